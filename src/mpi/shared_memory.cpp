#include "mpi/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "machine/memory/freed_memory.hpp"
#include "machine/memory/memory_limit.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::mpi {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void reset(int fd) { std::swap(fd_, fd); }

 private:
  int fd_;
};

// The data with which other ranks open the first rank's memory.
struct Address {
  long long pid = 0;
  int fd = -1;
  unsigned long long device = 0;
  unsigned long long inode = 0;
  unsigned long long bytes = 0;
};

[[noreturn]] void fail(const std::string& what, int code) {
  throw MpiError({.what = text::concat(what, ": ", std::generic_category().message(code)),
                  .why = "the ranks of a node exchange tensors through memory that all of them map",
                  .hint = "let the ranks of a node run as one user in one PID namespace, or set "
                          "HORTATOR_COMMUNICATOR=mpi"});
}

Address address_of(int fd, std::size_t bytes) {
  struct stat facts {};
  if (fstat(fd, &facts) != 0) fail("Shared memory cannot be examined", errno);
  return {.pid = getpid(), .fd = fd, .device = facts.st_dev, .inode = facts.st_ino, .bytes = bytes};
}

Address create(Descriptor& memory, std::size_t bytes, const std::string& name) {
  memory.reset(memfd_create(name.c_str(), MFD_CLOEXEC));
  if (memory.get() < 0) fail("Shared memory cannot be created", errno);
  if (ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) {
    fail(text::concat("Shared memory of ", units::bytes(bytes), " cannot be created"), errno);
  }
  return address_of(memory.get(), bytes);
}

// Through /proc: needs no socket and no name that could be left behind.
void open_peers(Descriptor& memory, const Address& address) {
  const auto path = text::concat("/proc/", address.pid, "/fd/", address.fd);
  memory.reset(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (memory.get() < 0)
    fail("The shared memory of process " + std::to_string(address.pid) + " cannot be opened", errno);
  const auto found = address_of(memory.get(), address.bytes);
  if (found.inode != address.inode || found.device != address.device) {
    fail("Process " + std::to_string(address.pid) + " is not the rank it should be", ESRCH);
  }
}

void check_room(std::size_t bytes, int parts) {
  const auto room = machine::available_memory();
  if (!room || bytes * static_cast<std::size_t>(parts) <= *room) return;
  throw MpiError({.what = text::concat("No room for ", units::bytes(bytes * static_cast<std::size_t>(parts)),
                                       " of shared memory: ", units::bytes(*room), " are free"),
                  .why = "gradients live in memory that all ranks of a node map",
                  .hint = "ask for more memory a node, or start fewer ranks a node"});
}

// Allocates the pages of this rank's part, so that they lie near the rank's CPUs. In several calls: a signal undoes a
// whole call, and with a profiler's signals a long one would never end.
void populate(int fd, std::size_t begin, std::size_t bytes) {
  constexpr std::size_t piece = std::size_t{16} << 20;
  for (std::size_t done = 0; done < bytes; done += piece) {
    int code = 0;
    do {
      code = posix_fallocate(fd, static_cast<off_t>(begin + done), static_cast<off_t>(std::min(piece, bytes - done)));
    } while (code == EINTR);
    if (code != 0) fail(text::concat(units::bytes(bytes), " of shared memory cannot be had"), code);
  }
}

void check_same_size(const Address& address, std::size_t bytes) {
  if (address.bytes == bytes) return;
  throw MpiError({.what = text::concat(units::bytes(bytes), " of shared memory were asked for here, ",
                                       units::bytes(address.bytes), " by the first rank of the node"),
                  .why = "all ranks of a node map the same",
                  .hint = "allocate the same sizes in the same order on all ranks"});
}

std::size_t rounded_to_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

SharedMemory::SharedMemory(const Communicator& node, const Communicator& all, std::size_t bytes_a_rank,
                           const std::string& name)
    : bytes_(bytes_a_rank), stride_(rounded_to_pages(bytes_a_rank)), parts_(node.size()) {
  const auto total = stride_ * static_cast<std::size_t>(parts_);
  Descriptor memory(-1);
  Address address;
  machine::return_freed_memory();
  barrier(node);  // memory that a peer frees counts as available
  all_or_none(all, [&] {
    check_room(stride_, parts_);
    if (node.rank() == 0) address = create(memory, total, name);
  });
  address = broadcast(node, address);
  all_or_none(all, [&] {
    check_same_size(address, total);
    if (total == 0) return;
    if (node.rank() != 0) open_peers(memory, address);
    populate(memory.get(), stride_ * static_cast<std::size_t>(node.rank()), stride_);
    void* mapped = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (mapped == MAP_FAILED) fail(text::concat(units::bytes(total), " of shared memory cannot be mapped"), errno);
    memory_ = {static_cast<std::byte*>(mapped), Unmap{total}};
  });
}

void SharedMemory::Unmap::operator()(std::byte* begin) const noexcept { munmap(begin, bytes); }

}  // namespace hortator::mpi
