#include "comm/monitor/tcp_link.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>
#include <thread>

#include "ir/base/check.h"

namespace heddle::comm {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kBetweenMessages = std::chrono::milliseconds(200);
// close() tries again to send after this time.
constexpr auto kRetry = std::chrono::milliseconds(5);
// The longest time in which join() tries to connect to one address of rank 0.
constexpr auto kPerAddress = std::chrono::seconds(2);
constexpr auto kLongestClose = std::chrono::seconds(1);

// The first bytes that a machine sends on a new connection.
struct Hello {
  std::array<char, 32> token;  // proves that the sender belongs to the job
  int32_t leader;              // lowest rank of the machine of the sender
};
static_assert(std::is_trivially_copyable_v<RankFacts>);

// Appends a status to the bytes that a connection will send.
void append(std::string& bytes, const RankSnapshot& status) {
  const uint64_t length = status.reason.size();
  bytes.append(reinterpret_cast<const char*>(static_cast<const RankFacts*>(&status)),
               sizeof(RankFacts));
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += status.reason;
}

// Moves a status from the start of `bytes` to `status`. Returns false if `bytes` is too short.
bool take(std::string_view& bytes, RankSnapshot& status) {
  uint64_t length = 0;
  constexpr size_t kFixed = sizeof(RankFacts) + sizeof length;
  if (bytes.size() < kFixed) return false;
  std::memcpy(static_cast<RankFacts*>(&status), bytes.data(), sizeof(RankFacts));
  std::memcpy(&length, bytes.data() + sizeof(RankFacts), sizeof length);
  if (bytes.size() - kFixed < length) return false;
  status.reason = bytes.substr(kFixed, length);
  bytes.remove_prefix(kFixed + length);
  return true;
}

// Returns the IPv4 addresses of this machine. Loopback addresses come last.
std::vector<std::string> addresses() {
  std::vector<std::string> found, loops;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {"127.0.0.1"};
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const bool is_up = (one->ifa_flags & IFF_UP) != 0;
    if (one->ifa_addr == nullptr || !is_up || one->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address;
    std::memcpy(&address, one->ifa_addr, sizeof address);
    const std::string text = asio::ip::address_v4(ntohl(address.sin_addr.s_addr)).to_string();
    ((one->ifa_flags & IFF_LOOPBACK) != 0 ? loops : found).push_back(text);
  }
  freeifaddrs(list);
  found.insert(found.end(), loops.begin(), loops.end());
  return found;
}

std::string randomToken() {
  std::random_device device;
  std::string token;
  while (token.size() < sizeof(Hello::token)) token += fmt::format("{:08x}", device());
  return token;
}

}  // namespace

struct TcpLink::Connection {
  tcp::socket socket;
  int leader;  // lowest rank of the machine at the other end
  std::string in = {}, out = {};
  bool readable = true;
  bool writable = true;
  bool closed_well = false;  // the last message has arrived (TcpLink::close())
};

struct TcpLink::Wire {
  asio::io_context context;
  tcp::acceptor acceptor{context};
  std::string token;
  std::vector<Connection> connections;

  // Waits for an asynchronous operation of `user`, which is a socket or an acceptor. start(done)
  // must begin the operation. Returns the error of the operation. If the operation has not ended at
  // the time `until`, closes `user` and returns timed_out.
  template <class User, class Start>
  error_code await(User& user, Clock::time_point until, const Start& start) {
    std::optional<error_code> result;
    start([&](const error_code& error, auto...) { result = error; });
    context.restart();
    context.run_until(until);
    if (result) return *result;
    user.close();
    context.run();
    return asio::error::timed_out;
  }

  void add(tcp::socket socket, int leader) {
    socket.non_blocking(true);
    socket.set_option(tcp::no_delay(true));
    connections.push_back({std::move(socket), leader});
  }
};

TcpLink::TcpLink(const RankLocations& locations, std::shared_ptr<RankStatus[]> statuses, int rank)
    : locations_(locations),
      statuses_(std::move(statuses)),
      rank_(rank),
      wire_(std::make_unique<Wire>()) {}
TcpLink::~TcpLink() = default;

// The first exchange distributes the invitation of rank 0. The second exchange tells all ranks
// whether a rank has failed.
std::unique_ptr<TcpLink> TcpLink::connect(World& world, const RankLocations& locations,
                                          std::shared_ptr<RankStatus[]> statuses, double deadline) {
  const std::vector<int> leaders = locations.leaders();
  if (leaders.size() == 1) return nullptr;
  const auto until =
      Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(1000 * deadline));
  const bool leads = std::binary_search(leaders.begin(), leaders.end(), world.rank());
  std::unique_ptr<TcpLink> link;
  std::string invitation, error;
  const auto attempt = [&](const auto& work) {
    try {
      if (leads && error.empty()) work();
    } catch (const std::exception& thrown) {
      error = fmt::format("the job monitor between machines: {}", thrown.what());
    }
  };
  attempt([&] {
    link.reset(new TcpLink(locations, std::move(statuses), world.rank()));
    if (world.rank() == 0) invitation = link->listen();
  });
  invitation = world.exchange(invitation)[0];
  attempt([&] { world.rank() == 0 ? link->acceptAll(until) : link->join(invitation, until); });
  for (const std::string& one : world.exchange(error)) HEDDLE_USER_CHECK(one.empty(), "{}", one);
  return link;
}

// Opens the port to which the lowest ranks of the other machines connect. Returns the invitation
// "TOKEN PORT ADDRESS...", which join() reads.
std::string TcpLink::listen() {
  wire_->token = randomToken();
  wire_->acceptor = tcp::acceptor(wire_->context, tcp::endpoint(tcp::v4(), 0));
  wire_->acceptor.non_blocking(true);
  return fmt::format("{} {} {}", wire_->token, wire_->acceptor.local_endpoint().port(),
                     fmt::join(addresses(), " "));
}

// Accepts a connection from every other machine. Closes connections that do not send the token.
void TcpLink::acceptAll(Clock::time_point until) {
  const size_t others = locations_.leaders().size() - 1;
  while (wire_->connections.size() < others) {
    tcp::socket socket(wire_->context);
    const error_code refused = wire_->await(wire_->acceptor, until, [&](const auto& done) {
      wire_->acceptor.async_accept(socket, done);
    });
    HEDDLE_USER_CHECK(!refused, "{} of {} machines did not connect: {}",
                      others - wire_->connections.size(), others, refused.message());
    Hello hello;
    const error_code unread = wire_->await(socket, until, [&](const auto& done) {
      asio::async_read(socket, asio::buffer(&hello, sizeof hello), done);
    });
    const std::string_view token(hello.token.data(), hello.token.size());
    if (!unread && token == wire_->token) wire_->add(std::move(socket), hello.leader);
  }
  wire_->acceptor.close();
}

void TcpLink::join(const std::string& invitation, Clock::time_point until) {
  HEDDLE_USER_CHECK(!invitation.empty(), "rank 0 does not listen");
  std::istringstream in(invitation);
  std::string token, address, tried;
  uint16_t port = 0;
  in >> token >> port;
  while (in >> address && Clock::now() < until) {
    tcp::socket socket(wire_->context);
    const tcp::endpoint rank_0(asio::ip::make_address(address), port);
    const error_code error =
        wire_->await(socket, Clock::now() + kPerAddress,
                     [&](const auto& done) { socket.async_connect(rank_0, done); });
    if (error) {
      tried += fmt::format(" {}:{} ({})", address, port, error.message());
      continue;
    }
    Hello hello{{}, rank_};
    token.copy(hello.token.data(), hello.token.size());
    asio::write(socket, asio::buffer(&hello, sizeof hello));
    return wire_->add(std::move(socket), 0);
  }
  userError("rank 0 cannot be reached from rank {}:{}", rank_, tried);
}

void TcpLink::poll() {
  for (Connection& connection : wire_->connections) receive(connection);
  const bool due = Clock::now() >= next_;
  if (due) next_ = Clock::now() + kBetweenMessages;
  for (Connection& connection : wire_->connections) {
    if (due || !connection.out.empty()) send(connection, false);
  }
}

void TcpLink::close() {
  const auto until = Clock::now() + kLongestClose;
  for (Connection& connection : wire_->connections) {
    receive(connection);
    send(connection, true);
    while (connection.readable && connection.writable && !connection.out.empty() &&
           Clock::now() < until) {
      std::this_thread::sleep_for(kRetry);
      send(connection, false);
    }
  }
}

void TcpLink::receive(Connection& connection) {
  char bytes[16384];
  while (connection.readable) {
    error_code error;
    connection.in.append(bytes, connection.socket.read_some(asio::buffer(bytes), error));
    if (error == asio::error::would_block) break;
    if (error) connection.readable = false;
  }
  std::string_view rest = connection.in;
  for (RankSnapshot status; take(rest, status);) apply(connection, status);
  connection.in.erase(0, connection.in.size() - rest.size());
  if (connection.readable || connection.closed_well) return;
  const RankLocations::Location& location = locations_[connection.leader];
  statuses_[connection.leader].state.leave(
      RankState::Gone,
      fmt::format("its process ({}) has closed its connection without leaving", location.text()));
}

// Copies a status that has arrived to this machine's copy, and records whether it belongs to a last
// message.
void TcpLink::apply(Connection& connection, const RankSnapshot& status) {
  if (status.rank < 0 || static_cast<size_t>(status.rank) >= locations_.ranks.size()) return;
  if (status.rank == connection.leader && status.heartbeat == kUnwatched) {
    connection.closed_well = true;
  }
  mirror(statuses_[status.rank], status);
}

// The machine of rank 0 sends the statuses of all ranks that are not on the receiving machine.
// Every other machine sends the statuses of its own ranks. Unless `last` is true, send() reads new
// statuses only after it has sent the previous ones. If the network is slow, statuses therefore do
// not queue up: fewer of them are sent, and each is recent.
void TcpLink::send(Connection& connection, bool last) {
  if (!connection.readable || !connection.writable) return;
  if (connection.out.empty() || last) {
    const std::vector<int> machine = locations_.onMachineOf(rank_ == 0 ? connection.leader : rank_);
    for (int rank = 0; rank < static_cast<int>(locations_.ranks.size()); ++rank) {
      if (std::binary_search(machine.begin(), machine.end(), rank) == (rank_ == 0)) continue;
      RankSnapshot status = read(statuses_[rank], rank);
      if (last) status.heartbeat = kUnwatched;
      if (status.state != RankState::Writing) append(connection.out, status);
    }
  }
  error_code error;
  connection.out.erase(0, connection.socket.write_some(asio::buffer(connection.out), error));
  // Reading goes on in receive(), because the other end may have sent a last message.
  if (error && error != asio::error::would_block) connection.writable = false;
}

}  // namespace heddle::comm
