// Collectives, in groups or alone: when the device comes to a rank's operation, its data goes to all others, who
// compare and compute.
#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "core/text/text.hpp"
#include "host_device.hpp"
#include "mock_state.hpp"
#include "support/far_device.hpp"

using namespace hortator;
using namespace hortator::test;

namespace {

enum class Verb { all_reduce, reduce_scatter, all_gather, broadcast, send, receive };

// What must be the same on all ranks. Compared byte by byte, hence no gaps.
struct Call {
  std::int64_t count;
  Verb verb;
  std::int32_t type, op, root, is_registered, unused;
};

struct Operation {
  Call call;
  const void* from;
  void* to;
};

at::ScalarType scalar_type(int type) {
  switch (type) {
    case ncclFloat32:
      return at::kFloat;
    case ncclFloat64:
      return at::kDouble;
    case ncclFloat16:
      return at::kHalf;
    case ncclBfloat16:
      return at::kBFloat16;
    case ncclUint8:
      return at::kByte;
    case ncclInt8:
      return at::kChar;
    case ncclInt32:
      return at::kInt;
    case ncclInt64:
      return at::kLong;
    default:
      throw std::runtime_error("the mock knows no such type");
  }
}

std::size_t size_of(const Call& call, std::size_t ranks) {
  const auto one = static_cast<std::size_t>(call.count) * at::elementSize(scalar_type(call.type));
  return call.verb == Verb::reduce_scatter ? ranks * one : one;
}

// Each partial sum in the type itself, as in a ring.
at::Tensor combine(at::Tensor sum, const at::Tensor& next, int op) {
  if (op == ncclMax) return at::maximum(sum, next);
  if (op == ncclMin) return at::minimum(sum, next);
  if (op == ncclProd) return sum * next;
  return sum + next;
}

at::Tensor as_tensor(const Bytes& message, const Call& call) {
  auto* data = const_cast<std::byte*>(message.data()) + sizeof(Call);
  const auto bytes = message.size() - sizeof(Call);
  const auto type = scalar_type(call.type);
  return at::from_blob(data, {static_cast<std::int64_t>(bytes / at::elementSize(type))},
                       at::TensorOptions().dtype(type));
}

at::Tensor reduced(const std::vector<Bytes>& all, const Call& call) {
  auto result = as_tensor(all[0], call).clone();
  for (std::size_t i = 1; i < all.size(); ++i) result = combine(result, as_tensor(all[i], call), call.op);
  return call.op == ncclAvg ? result / static_cast<std::int64_t>(all.size()) : result;
}

void finish(const Operation& operation, const std::vector<Bytes>& all, const ncclComm& comm) {
  const auto& call = operation.call;
  at::Tensor result;
  if (call.verb == Verb::broadcast) {
    result = as_tensor(all[static_cast<std::size_t>(call.root)], call);
  } else if (call.verb == Verb::all_gather) {
    std::vector<at::Tensor> parts;
    for (const auto& message : all) parts.push_back(as_tensor(message, call));
    result = at::cat(parts);
  } else {
    result = reduced(all, call);
    if (call.verb == Verb::reduce_scatter) result = result.narrow(0, comm.rank * call.count, call.count);
  }
  std::memcpy(near(operation.to), result.contiguous().data_ptr(), result.nbytes());
}

bool is_between_two(const Operation& operation) {
  return operation.call.verb == Verb::send || operation.call.verb == Verb::receive;
}

// What one rank sends is what the other receives: as many bytes, `root` being the peer.
bool agree_in_pair(const Operation& operation, const std::vector<Bytes>& both) {
  return std::ranges::all_of(both, [&](const Bytes& message) {
    Call other{};
    std::memcpy(&other, message.data(), sizeof other);
    return other.count == operation.call.count && other.type == operation.call.type;
  });
}

bool agree(const Operation& operation, const std::vector<Bytes>& all) {
  return std::ranges::all_of(all, [&](const Bytes& message) {
    return message.size() >= sizeof(Call) && std::memcmp(message.data(), &operation.call, sizeof(Call)) == 0;
  });
}

/// An operation on the stream.
class DeviceWork {
 public:
  DeviceWork(ncclComm* comm, const Operation& operation, MessageKey key)
      : comm_(comm), operation_(operation), key_(key), begin_(Clock::now() + mock_nccl().device_latency) {}

  /// Whether it is done. With the abort flag it leaves at once, as NCCL's kernels do, and no error tells.
  bool move_on() {
    if (*comm_->abort_flag) return true;
    if (Clock::now() < begin_) return false;
    if (!exchange_) exchange_.emplace(partners(), key_, message());
    if (!exchange_->move_on()) return false;
    if (is_between_two(operation_) && agree_in_pair(operation_, exchange_->all())) {
      finish_in_pair();
    } else if (!is_between_two(operation_) && agree(operation_, exchange_->all())) {
      finish(operation_, exchange_->all(), *comm_);
    } else {
      violation("ranks do not call the same operation, count, type or kind of memory");
      comm_->state = ncclInvalidUsage;
    }
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // All ranks, or the sender and the receiver, in this order.
  std::vector<int> partners() const {
    if (!is_between_two(operation_)) return comm_->ranks;
    const int mine = comm_->ranks[static_cast<std::size_t>(comm_->rank)];
    const int other = comm_->ranks[static_cast<std::size_t>(operation_.call.root)];
    return operation_.call.verb == Verb::send ? std::vector<int>{mine, other} : std::vector<int>{other, mine};
  }
  Bytes message() const {
    const bool has_data = operation_.call.verb != Verb::receive;
    Bytes message(sizeof(Call) + (has_data ? size_of(operation_.call, comm_->ranks.size()) : 0));
    std::memcpy(message.data(), &operation_.call, sizeof(Call));
    if (has_data) std::memcpy(message.data() + sizeof(Call), near(operation_.from), message.size() - sizeof(Call));
    return message;
  }
  void finish_in_pair() const {
    if (operation_.call.verb == Verb::send) return;
    const auto& sent = exchange_->all().front();
    std::memcpy(near(operation_.to), sent.data() + sizeof(Call), sent.size() - sizeof(Call));
  }

  ncclComm* comm_;
  Operation operation_;
  MessageKey key_;
  Clock::time_point begin_;
  std::optional<Exchange> exchange_;
};

// An operation of two ranks only has a key of theirs: the other ranks do not count it.
MessageKey key_of(ncclComm* comm, const Operation& operation) {
  if (!is_between_two(operation)) return next_message(comm);
  const bool sends = operation.call.verb == Verb::send;
  return next_message(comm, sends ? comm->rank : operation.call.root, sends ? operation.call.root : comm->rank);
}

// The first collective connects the ranks, which waits for all of them. Then the device has it; no peer is waited for.
void take_over(ncclComm* comm, const std::vector<Operation>& operations) {
  const bool connects = !comm->is_connected && !std::ranges::all_of(operations, is_between_two);
  comm->is_connected = comm->is_connected || connects;
  const auto greeting = connects ? next_message(comm) : MessageKey();
  std::vector<std::pair<Operation, MessageKey>> numbered;
  for (const auto& operation : operations) numbered.emplace_back(operation, key_of(comm, operation));
  begin(comm, [=] {
    if (connects) {
      Exchange hello(comm->ranks, greeting, Bytes(1));
      if (!wait_in_job(comm, [&] { return hello.move_on(); })) return ncclInternalError;
    }
    // Those between two ranks run together, as in NCCL's kernel of a group.
    std::vector<std::shared_ptr<DeviceWork>> together;
    for (const auto& [operation, key] : numbered) {
      auto work = std::make_shared<DeviceWork>(comm, operation, key);
      if (is_between_two(operation)) {
        together.push_back(std::move(work));
      } else {
        submit([work] { return work->move_on(); });
      }
    }
    if (!together.empty()) {
      submit([together]() mutable {
        std::erase_if(together, [](const auto& work) { return work->move_on(); });
        return together.empty();
      });
    }
    return ncclSuccess;
  });
}

bool is_registered(const ncclComm& comm, const void* data, std::size_t bytes) {
  for (const auto& [begin, size] : comm.registered) {
    const auto* first = static_cast<const std::byte*>(begin);
    const auto* mine = static_cast<const std::byte*>(data);
    if (mine >= first && mine + bytes <= first + size) return true;
  }
  return false;
}

thread_local std::vector<std::pair<ncclComm*, Operation>> group;

ncclResult_t give(ncclComm* comm, Operation operation, const char* name, cudaStream_t stream) {
  const Entered entered(name);
  if (const auto code = usable(comm, name); code != ncclSuccess) return code;
  if (stream == nullptr) violation(text::concat(name, " on the default stream"));
  add_to_trace(name);
  operation.call.is_registered = is_registered(*comm, operation.to, size_of(operation.call, 1)) ? 1 : 0;
  if (group_state().depth == 0) {
    take_over(comm, {operation});
    return truth_of(name).answer;
  }
  if (!group.empty() && group.front().first != comm) violation("the mock knows groups of one communicator");
  group.emplace_back(comm, operation);
  return ncclSuccess;
}

}  // namespace

ncclResult_t ncclGroupStart() {
  ++group_state().depth;
  return truth_of("ncclGroupStart").answer;
}

ncclResult_t ncclGroupEnd() {
  auto& state = group_state();
  if (state.depth == 0) violation("ncclGroupEnd without a start");
  if (--state.depth > 0) return ncclSuccess;
  const bool blocks = std::exchange(state.blocks, false);
  const auto calls = std::exchange(group, {});
  if (blocks && !calls.empty()) violation("blocking and other communicators in one group");
  if (calls.empty()) return ncclSuccess;
  if (calls.size() > 1) ++mock_nccl().groups;
  std::vector<Operation> operations;
  for (const auto& [comm, operation] : calls) operations.push_back(operation);
  take_over(calls.front().first, operations);
  return truth_of("ncclGroupEnd").answer;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return give(comm, {{static_cast<std::int64_t>(count), Verb::all_reduce, type, op, 0, 0, 0}, from, to},
              "ncclAllReduce", stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return give(comm, {{static_cast<std::int64_t>(count), Verb::reduce_scatter, type, op, 0, 0, 0}, from, to},
              "ncclReduceScatter", stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return give(comm, {{static_cast<std::int64_t>(count), Verb::all_gather, type, 0, 0, 0, 0}, from, to}, "ncclAllGather",
              stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return give(comm, {{static_cast<std::int64_t>(count), Verb::broadcast, type, 0, root, 0, 0}, from, to},
              "ncclBroadcast", stream);
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return give(comm, {{static_cast<std::int64_t>(count), Verb::send, type, 0, peer, 0, 0}, from, nullptr}, "ncclSend",
              stream);
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return give(comm, {{static_cast<std::int64_t>(count), Verb::receive, type, 0, peer, 0, 0}, nullptr, to}, "ncclRecv",
              stream);
}
