#include "comm/monitor/tcp_link.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
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
constexpr auto kRetry = std::chrono::milliseconds(5);
constexpr auto kPerAddress = std::chrono::seconds(2);
constexpr auto kLongestClose = std::chrono::seconds(1);
constexpr uint64_t kLargestMessage = uint64_t{1} << 28;

// The first bytes that a host sends on a new connection.
struct Hello {
  std::array<char, 32> token;  // proves that the sender belongs to the job
  int32_t leader;              // lowest rank of the host of the sender
};
static_assert(std::is_trivially_copyable_v<RankFacts>);

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Moves a T from the start of `bytes` to `value`. Returns false if `bytes` is too short.
template <class T>
bool take(std::string_view& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

// Returns the IPv4 addresses of this host. Loopback addresses come last.
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
  int leader;  // lowest rank of the host at the other end
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
};

TcpLink::TcpLink(const JobPlaces& places, std::shared_ptr<RankStatus[]> statuses, int rank)
    : places_(places),
      statuses_(std::move(statuses)),
      rank_(rank),
      wire_(std::make_unique<Wire>()) {}
TcpLink::~TcpLink() = default;

// The first exchange distributes the invitation of rank 0. The second one tells all ranks whether
// a rank has failed.
std::unique_ptr<TcpLink> TcpLink::connect(World& world, const JobPlaces& places,
                                          std::shared_ptr<RankStatus[]> statuses, double deadline) {
  const std::vector<int> leaders = places.leaders();
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
      error = fmt::format("the job monitor between hosts: {}", thrown.what());
    }
  };
  attempt([&] {
    link.reset(new TcpLink(places, std::move(statuses), world.rank()));
    if (world.rank() == 0) invitation = link->listen();
  });
  invitation = world.exchange(invitation)[0];
  attempt([&] { world.rank() == 0 ? link->acceptAll(until) : link->join(invitation, until); });
  for (const std::string& one : world.exchange(error)) HEDDLE_USER_CHECK(one.empty(), "{}", one);
  return link;
}

// Opens the port to which the lowest ranks of the other hosts connect. Returns the invitation
// "TOKEN PORT ADDRESS...", which join() reads.
std::string TcpLink::listen() {
  wire_->token = randomToken();
  wire_->acceptor = tcp::acceptor(wire_->context, tcp::endpoint(tcp::v4(), 0));
  wire_->acceptor.non_blocking(true);
  return fmt::format("{} {} {}", wire_->token, wire_->acceptor.local_endpoint().port(),
                     fmt::join(addresses(), " "));
}

// Accepts a connection from every other host. Closes connections that do not send the token.
void TcpLink::acceptAll(Clock::time_point until) {
  const size_t others = places_.leaders().size() - 1;
  while (wire_->connections.size() < others) {
    HEDDLE_USER_CHECK(Clock::now() < until, "{} of {} hosts did not connect",
                      others - wire_->connections.size(), others);
    tcp::socket socket(wire_->context);
    error_code error;
    wire_->acceptor.accept(socket, error);
    if (error) {
      std::this_thread::sleep_for(kRetry);
      continue;
    }
    socket.non_blocking(true);
    Hello hello;
    size_t got = 0;
    while (got < sizeof hello && Clock::now() < until) {
      char* const at = reinterpret_cast<char*>(&hello) + got;
      got += socket.read_some(asio::buffer(at, sizeof hello - got), error);
      if (error && error != asio::error::would_block) break;
      if (error) std::this_thread::sleep_for(kRetry);
    }
    const std::string_view token(hello.token.data(), hello.token.size());
    if (got < sizeof hello || token != wire_->token) continue;
    socket.set_option(tcp::no_delay(true));
    wire_->connections.push_back({std::move(socket), hello.leader});
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
    error_code result = asio::error::timed_out;
    socket.async_connect(tcp::endpoint(asio::ip::make_address(address), port),
                         [&](const error_code& error) { result = error; });
    wire_->context.restart();
    wire_->context.run_for(kPerAddress);
    if (result) {
      tried += fmt::format(" {}:{} ({})", address, port, result.message());
      socket.close();
      wire_->context.restart();
      wire_->context.run();
      continue;
    }
    Hello hello{{}, rank_};
    token.copy(hello.token.data(), hello.token.size());
    asio::write(socket, asio::buffer(&hello, sizeof hello));
    socket.non_blocking(true);
    socket.set_option(tcp::no_delay(true));
    wire_->connections.push_back({std::move(socket), 0});
    return;
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
  uint64_t length = 0;
  for (std::string_view in = connection.in; take(in, length); in = connection.in) {
    if (length > kLargestMessage) connection.readable = false;
    if (in.size() < length) break;
    apply(connection, std::string(in.substr(0, length)));
    connection.in.erase(0, sizeof length + length);
  }
  if (connection.readable || connection.closed_well) return;
  const JobPlaces::Place& place = places_.ranks[static_cast<size_t>(connection.leader)];
  statuses_[connection.leader].state.leave(
      RankState::Gone, fmt::format("its process (pid {} on {}) has closed its connection without "
                                   "leaving",
                                   place.pid, place.host));
}

// Copies the statuses of a message to the statuses of this host. Rank 0 only accepts statuses of
// ranks on the host of the sender. Every other host ignores statuses of its own ranks.
void TcpLink::apply(Connection& connection, const std::string& message) {
  const std::vector<int> here = places_.onHostOf(rank_);
  const std::vector<int> there = places_.onHostOf(connection.leader);
  std::string_view rest = message;
  RankSnapshot entry;
  uint64_t reason_bytes = 0;
  while (take(rest, static_cast<RankFacts&>(entry)) && take(rest, reason_bytes)) {
    if (reason_bytes > rest.size()) return;
    entry.reason = rest.substr(0, reason_bytes);
    rest.remove_prefix(reason_bytes);
    const auto has = [&](const std::vector<int>& ranks) {
      return std::binary_search(ranks.begin(), ranks.end(), entry.rank);
    };
    const bool known = entry.rank >= 0 && static_cast<size_t>(entry.rank) < places_.ranks.size();
    if (!known || (rank_ == 0 ? !has(there) : has(here))) continue;
    if (entry.rank == connection.leader && entry.heartbeat == kUnwatched) {
      connection.closed_well = true;
    }
    mirror(statuses_[entry.rank], entry);
  }
}

// The host of rank 0 sends the statuses of all ranks that are not on the receiving host. Every
// other host sends the statuses of its own ranks. A new message is composed only after the
// previous message has been sent, so a slow network carries fewer messages, but no outdated ones.
void TcpLink::send(Connection& connection, bool last) {
  if (!connection.readable || !connection.writable) return;
  if (connection.out.empty() || last) {
    const std::vector<int> host = places_.onHostOf(rank_ == 0 ? connection.leader : rank_);
    std::string message;
    for (int rank = 0; rank < static_cast<int>(places_.ranks.size()); ++rank) {
      if (std::binary_search(host.begin(), host.end(), rank) == (rank_ == 0)) continue;
      RankSnapshot entry = read(statuses_[rank], rank);
      if (entry.state == RankState::Writing) continue;
      if (last) entry.heartbeat = kUnwatched;
      append(message, static_cast<const RankFacts&>(entry));
      append(message, uint64_t{entry.reason.size()});
      message += entry.reason;
    }
    append(connection.out, uint64_t{message.size()});
    connection.out += message;
  }
  error_code error;
  connection.out.erase(0, connection.socket.write_some(asio::buffer(connection.out), error));
  // receive() still reads from the connection, because the other end may have sent a last message.
  if (error && error != asio::error::would_block) connection.writable = false;
}

}  // namespace heddle::comm
