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

#include "ir/base/error.h"

namespace heddle::comm {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using boost::system::error_code;

constexpr auto kBetweenFrames = std::chrono::milliseconds(200);
constexpr auto kNap = std::chrono::milliseconds(5);
constexpr auto kPerAddress = std::chrono::seconds(2);
constexpr auto kGoodbye = std::chrono::seconds(1);
constexpr size_t kTokenBytes = 32;
constexpr size_t kLargestFrame = size_t{1} << 28;

// A rank as it travels; its reason follows.
struct Record {
  int32_t rank;
  RankState state;
  RankPhase phase;
  int32_t issued, computing, communicating;
  int64_t run, finished;
  uint64_t program, plan, heartbeat, progress;
  uint64_t reason_bytes;
};

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append(std::string& bytes, const RankSnapshot& e, bool last) {
  append(bytes,
         Record{e.rank, e.state, e.phase, e.issued, e.computing, e.communicating, e.run, e.finished,
                e.program, e.plan, last ? kUnwatched : e.heartbeat, e.progress, e.reason.size()});
  bytes += e.reason;
}

// The addresses of this host, those of its networks first.
std::vector<std::string> addresses() {
  std::vector<std::string> found, loops;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {"127.0.0.1"};
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    if (one->ifa_addr->sa_family != AF_INET) continue;
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
  while (token.size() < kTokenBytes) token += fmt::format("{:08x}", device());
  return token.substr(0, kTokenBytes);
}

// Reads `bytes` from a socket that does not block; false when they do not come in time.
bool readAll(tcp::socket& socket, char* to, size_t bytes, Clock::time_point until) {
  size_t got = 0;
  while (got < bytes) {
    error_code error;
    got += socket.read_some(asio::buffer(to + got, bytes - got), error);
    if (!error) continue;
    if (error != asio::error::would_block || Clock::now() >= until) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

}  // namespace

struct TcpLink::Connection {
  tcp::socket socket;
  int leader;  // the first rank of the host at the other end
  std::string in, out;
  bool open = true;
  bool left = false;  // the other end has closed in good order
  bool deaf = false;  // it hears no more
};

struct TcpLink::Wire {
  asio::io_context context;
  std::unique_ptr<tcp::acceptor> acceptor;
  std::string token;
  std::vector<Connection> connections;
};

TcpLink::TcpLink(const JobPlaces& places, StatusMemory& memory, int rank)
    : places_(places), memory_(memory), rank_(rank), wire_(std::make_unique<Wire>()) {}
TcpLink::~TcpLink() = default;

std::unique_ptr<TcpLink> TcpLink::connect(World& world, const JobPlaces& places,
                                          StatusMemory& memory, double deadline) {
  const std::vector<int> leaders = places.leaders();
  if (leaders.size() == 1) return nullptr;
  const auto until =
      Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(1000 * deadline));
  const bool leads = std::find(leaders.begin(), leaders.end(), world.rank()) != leaders.end();
  std::unique_ptr<TcpLink> link;
  std::string fault;
  const auto attempt = [&](const auto& work) {
    try {
      if (leads && fault.empty()) work();
    } catch (const std::exception& error) {
      fault = fmt::format("the job monitor between hosts: {}", error.what());
    }
  };
  attempt([&] {
    link.reset(new TcpLink(places, memory, world.rank()));
    if (world.rank() == 0) link->listen();
  });
  const bool invites = world.rank() == 0 && fault.empty();
  const std::string invitation = world.exchange(invites ? link->invitation() : "")[0];
  attempt([&] {
    if (world.rank() == 0) {
      link->acceptAll(until);
    } else {
      link->join(invitation, until);
    }
  });
  for (const std::string& one : world.exchange(fault)) HEDDLE_USER_CHECK(one.empty(), "{}", one);
  if (link) link->introduce();
  return link;
}

// All are there: what is lost before its first frame has a name.
void TcpLink::introduce() {
  const std::vector<int> here = places_.onHostOf(rank_);
  for (int rank = 0; rank < memory_.size(); ++rank) {
    if (std::binary_search(here.begin(), here.end(), rank)) continue;
    const JobPlaces::Place& place = places_.ranks[static_cast<size_t>(rank)];
    RankSnapshot entry;
    entry.rank = rank;
    entry.state = RankState::Well;
    entry.pid = place.pid;
    entry.started = place.started;
    entry.host = place.host;
    mirror(memory_.status(rank), entry);
  }
}

void TcpLink::listen() {
  wire_->token = randomToken();
  wire_->acceptor = std::make_unique<tcp::acceptor>(wire_->context, tcp::endpoint(tcp::v4(), 0));
  wire_->acceptor->non_blocking(true);
}

std::string TcpLink::invitation() const {
  std::string text = fmt::format("{} {}", wire_->token, wire_->acceptor->local_endpoint().port());
  for (const std::string& address : addresses()) text += " " + address;
  return text;
}

// Whoever does not know the token is turned away.
void TcpLink::acceptAll(Clock::time_point until) {
  const size_t others = places_.leaders().size() - 1;
  while (wire_->connections.size() < others) {
    HEDDLE_USER_CHECK(Clock::now() < until, "{} of {} hosts did not connect",
                      others - wire_->connections.size(), others);
    tcp::socket socket(wire_->context);
    error_code error;
    wire_->acceptor->accept(socket, error);
    if (error) {
      std::this_thread::sleep_for(kNap);
      continue;
    }
    socket.non_blocking(true);
    char token[kTokenBytes];
    int32_t leader = -1;
    if (!readAll(socket, token, sizeof token, until) ||
        std::string_view(token, sizeof token) != wire_->token ||
        !readAll(socket, reinterpret_cast<char*>(&leader), sizeof leader, until)) {
      continue;
    }
    socket.set_option(tcp::no_delay(true));
    wire_->connections.push_back({std::move(socket), leader, "", "", true, false, false});
  }
  wire_->acceptor.reset();
}

void TcpLink::join(const std::string& invitation, Clock::time_point until) {
  HEDDLE_USER_CHECK(!invitation.empty(), "rank 0 does not listen");
  std::istringstream in(invitation);
  std::string token, address;
  uint16_t port = 0;
  in >> token >> port;
  std::string tried;
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
    std::string hello = token;
    append(hello, static_cast<int32_t>(rank_));
    asio::write(socket, asio::buffer(hello));
    socket.non_blocking(true);
    socket.set_option(tcp::no_delay(true));
    wire_->connections.push_back({std::move(socket), 0, "", "", true, false, false});
    return;
  }
  userError("rank 0 cannot be reached from rank {}:{}", rank_, tried);
}

void TcpLink::turn() {
  for (Connection& connection : wire_->connections) hear(connection);
  const bool due = Clock::now() >= next_;
  if (due) next_ = Clock::now() + kBetweenFrames;
  for (Connection& connection : wire_->connections) {
    if (due || !connection.out.empty()) send(connection, false);
  }
}

// Waits a little where a frame is on its way: half of the last one would say nothing.
void TcpLink::close() {
  const auto until = Clock::now() + kGoodbye;
  for (Connection& connection : wire_->connections) {
    hear(connection);
    send(connection, true);
    while (connection.open && !connection.deaf && !connection.out.empty() && Clock::now() < until) {
      std::this_thread::sleep_for(kNap);
      send(connection, false);
    }
  }
}

void TcpLink::hear(Connection& connection) {
  char bytes[16384];
  while (connection.open) {
    error_code error;
    const size_t got = connection.socket.read_some(asio::buffer(bytes), error);
    connection.in.append(bytes, got);
    if (error == asio::error::would_block) break;
    if (error) connection.open = false;
  }
  uint64_t length = 0;
  while (connection.in.size() >= sizeof length) {
    std::memcpy(&length, connection.in.data(), sizeof length);
    if (length > kLargestFrame) {
      connection.open = false;
      break;
    }
    if (connection.in.size() < sizeof length + length) break;
    take(connection, connection.in.substr(sizeof length, length));
    connection.in.erase(0, sizeof length + length);
  }
  if (connection.open || connection.left) return;
  const JobPlaces::Place& place = places_.ranks[static_cast<size_t>(connection.leader)];
  memory_.status(connection.leader)
      .tell(RankState::Gone, fmt::format("its process (pid {} on {}) has closed its connection "
                                         "without leaving",
                                         place.pid, place.host));
}

// Only of ranks that the other end speaks for.
void TcpLink::take(Connection& connection, const std::string& frame) {
  const std::vector<int> here = places_.onHostOf(rank_);
  const std::vector<int> there = places_.onHostOf(connection.leader);
  size_t at = 0;
  Record record;
  while (frame.size() - at >= sizeof record) {
    std::memcpy(&record, frame.data() + at, sizeof record);
    at += sizeof record;
    if (record.reason_bytes > frame.size() - at) return;
    const std::string reason = frame.substr(at, record.reason_bytes);
    at += record.reason_bytes;
    const bool known = record.rank >= 0 && record.rank < memory_.size();
    const auto speaksOf = [&](const std::vector<int>& ranks) {
      return std::binary_search(ranks.begin(), ranks.end(), record.rank);
    };
    if (!known || (rank_ == 0 ? !speaksOf(there) : speaksOf(here))) continue;
    if (record.rank == connection.leader && record.heartbeat == kUnwatched) connection.left = true;
    const JobPlaces::Place& place = places_.ranks[static_cast<size_t>(record.rank)];
    mirror(memory_.status(record.rank),
           {record.rank, record.state, record.phase, record.run, record.finished, record.program,
            record.plan, record.issued, record.computing, record.communicating, place.pid,
            place.started, record.heartbeat, record.progress, place.host, reason});
  }
}

// A frame is begun only when the one before it has gone: a slow network gets fewer, not older ones.
void TcpLink::send(Connection& connection, bool last) {
  if (!connection.open || connection.deaf) return;
  if (connection.out.empty() || last) {
    const std::vector<int> speaker = places_.onHostOf(rank_ == 0 ? connection.leader : rank_);
    std::string frame;
    for (int rank = 0; rank < memory_.size(); ++rank) {
      const bool listed = std::binary_search(speaker.begin(), speaker.end(), rank);
      if (listed == (rank_ == 0)) continue;  // rank 0's host tells of all but the listener's
      const RankSnapshot entry = read(memory_.status(rank), rank);
      if (entry.state == RankState::Absent || entry.state == RankState::Telling) continue;
      append(frame, entry, last);
    }
    append(connection.out, static_cast<uint64_t>(frame.size()));
    connection.out += frame;
  }
  error_code error;
  const size_t sent = connection.socket.write_some(asio::buffer(connection.out), error);
  connection.out.erase(0, sent);
  // What the other end has said before it closed is still to be heard.
  if (error && error != asio::error::would_block) connection.deaf = true;
}

}  // namespace heddle::comm
