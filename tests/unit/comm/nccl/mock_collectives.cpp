// Collectives, in groups or alone: each rank's operation goes to all others, who compare and compute.
#include <ATen/ATen.h>

#include <cstring>

#include "core/text/text.hpp"
#include "host_device.hpp"
#include "mock_state.hpp"
#include "support/far_device.hpp"

using namespace hortator;
using namespace hortator::test;

namespace {

enum class Verb { all_reduce, reduce_scatter, all_gather, broadcast };

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

bool agree(const std::vector<Bytes>& all) {
  for (const auto& message : all) {
    if (std::memcmp(message.data(), all[0].data(), sizeof(Call)) != 0) return false;
  }
  return true;
}

Step step_of(ncclComm* comm, const Operation& operation) {
  auto exchange = std::make_shared<std::shared_ptr<Exchange>>();
  return [=](ncclResult_t& state) {
    if (!*exchange) {  // not before its turn: what came before in the group may be what it sends
      Bytes message(sizeof(Call) + size_of(operation.call, comm->ranks.size()));
      std::memcpy(message.data(), &operation.call, sizeof(Call));
      std::memcpy(message.data() + sizeof(Call), near(operation.from), message.size() - sizeof(Call));
      *exchange = std::make_shared<Exchange>(comm->ranks, comm->tag, std::move(message));
    }
    if (!(*exchange)->move_on()) return false;
    if (!agree((*exchange)->all())) {
      violation("ranks do not call the same operation, count, type or kind of memory");
      state = ncclInvalidUsage;
      return true;
    }
    finish(operation, (*exchange)->all(), *comm);
    return true;
  };
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
  if (group_depth() == 0) return begin(comm, step_of(comm, operation));
  group.emplace_back(comm, operation);
  return ncclSuccess;
}

}  // namespace

ncclResult_t ncclGroupStart() {
  ++group_depth();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth() == 0) violation("ncclGroupEnd without a start");
  if (--group_depth() > 0) return ncclSuccess;
  const auto operations = std::exchange(group, {});
  if (operations.size() > 1) ++mock_nccl().groups;
  for (const auto& [comm, operation] : operations) begin(comm, step_of(comm, operation));
  return operations.empty() ? ncclSuccess : ncclInProgress;
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
