#include "comm/mpi/mpi_communicator.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <hortator/error.hpp>

#include "comm/exchange_agreement.hpp"
#include "comm/kernels/element.hpp"
#include "comm/mpi/mpi_datatype.hpp"
#include "comm/mpi/mpi_exchange.hpp"
#include "comm/operands.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "mpi/native.hpp"

namespace hortator::comm {
namespace {

std::byte* bytes_at(const at::Tensor& packed, std::int64_t element) {
  return static_cast<std::byte*>(packed.data_ptr()) + element * packed.element_size();
}

// Calls work(first element, count) for consecutive ranges of at most `piece` elements.
template <typename Work>
void in_pieces(std::int64_t elements, std::int64_t piece, const Work& work) {
  for (std::int64_t begin = 0; begin < elements; begin += piece) {
    work(begin, static_cast<int>(std::min(piece, elements - begin)));
  }
}

// A tensor that MPI can work on in place: `tensor` itself, or a packed copy in the reduction's type.
at::Tensor packed(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.detach().resolve_conj().resolve_neg().contiguous().to(type);
}

void divide_for_mean(const at::Tensor& sum, ReduceOp op, int ranks) {
  if (op == ReduceOp::mean) sum.div_(ranks);
}

void unpack(const at::Tensor& packed, const at::Tensor& tensor) {
  if (!packed.is_alias_of(tensor)) tensor.detach().copy_(packed.view(tensor.sizes()));
}

}  // namespace

Work MpiCommunicator::all_reduce(at::Tensor tensor, ReduceOp op) {
  check_result(tensor, at::kCPU, "all_reduce", name());
  check_reducible(tensor.scalar_type(), op);
  const auto data = packed(tensor, reduction_type(tensor.scalar_type()));
  const auto type = mpi_datatype(data.scalar_type());
  const auto operation = mpi_operation(data.scalar_type(), op);
  in_pieces(data.numel(), piece_, [&](std::int64_t begin, int count) {
    mpi::check(MPI_Allreduce(MPI_IN_PLACE, bytes_at(data, begin), count, type, operation, mpi::native(comm_)),
               "MPI_Allreduce");
  });
  divide_for_mean(data, op, size());
  unpack(data, tensor);
  return {};
}

Work MpiCommunicator::reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) {
  check_result(output, at::kCPU, "reduce_scatter", name());
  check_operand(input, at::kCPU, "reduce_scatter", name());
  check_reducible(input.scalar_type(), op);
  check_parts(input, output, size(), "reduce_scatter");
  const auto whole = packed(input, reduction_type(input.scalar_type()));
  const auto part = at::empty({output.numel()}, whole.options());
  const auto type = mpi_datatype(whole.scalar_type());
  const auto operation = mpi_operation(whole.scalar_type(), op);
  if (whole.numel() <= piece_) {
    mpi::check(MPI_Reduce_scatter_block(whole.data_ptr(), part.data_ptr(), static_cast<int>(part.numel()), type,
                                        operation, mpi::native(comm_)),
               "MPI_Reduce_scatter_block");
  } else {
    for (int root = 0; root < size(); ++root) {
      in_pieces(part.numel(), piece_, [&](std::int64_t begin, int count) {
        mpi::check(MPI_Reduce(bytes_at(whole, root * part.numel() + begin), bytes_at(part, begin), count, type,
                              operation, root, mpi::native(comm_)),
                   "MPI_Reduce");
      });
    }
  }
  divide_for_mean(part, op, size());
  unpack(part, output);
  return {};
}

Work MpiCommunicator::all_gather(at::Tensor output, const at::Tensor& input) {
  check_result(output, at::kCPU, "all_gather", name());
  check_operand(input, at::kCPU, "all_gather", name());
  check_parts(output, input, size(), "all_gather");
  const auto type = mpi_datatype(input.scalar_type());
  const auto part = packed(input, input.scalar_type());
  const auto whole = output.is_contiguous() ? output.detach() : at::empty({output.numel()}, output.options());
  const auto count = part.numel();
  if (whole.numel() <= piece_) {
    // MPI forbids overlapping buffers: a part that is in the output already is passed as MPI_IN_PLACE
    const void* const own = part.data_ptr() == bytes_at(whole, rank() * count) ? MPI_IN_PLACE : part.data_ptr();
    mpi::check(MPI_Allgather(own, static_cast<int>(count), type, whole.data_ptr(), static_cast<int>(count), type,
                             mpi::native(comm_)),
               "MPI_Allgather");
  } else {
    const auto flat = whole.view({-1});
    flat.narrow(0, rank() * count, count).copy_(part.view({-1}));
    for (int root = 0; root < size(); ++root) broadcast_packed(flat.narrow(0, root * count, count), root);
  }
  unpack(whole, output);
  return {};
}

Work MpiCommunicator::broadcast(at::Tensor tensor, int root) {
  check_result(tensor, at::kCPU, "broadcast", name());
  check_root(root, size());
  const auto data = packed(tensor, tensor.scalar_type());
  broadcast_packed(data, root);
  unpack(data, tensor);
  return {};
}

void MpiCommunicator::broadcast_packed(const at::Tensor& packed, int root) {
  const auto type = mpi_datatype(packed.scalar_type());
  in_pieces(packed.numel(), piece_, [&](std::int64_t begin, int count) {
    mpi::check(MPI_Bcast(bytes_at(packed, begin), count, type, root, mpi::native(comm_)), "MPI_Bcast");
  });
}

// A small reduction before the data lets all ranks throw on a mismatch: MPI would cut messages or wait for ever.
Work MpiCommunicator::exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) {
  agree_on_exchange(comm_, sent, received, [&] { check_exchange(sent, received, at::kCPU, size(), name()); });
  deliver_own(sent, received, rank());
  auto buffers = std::make_shared<const PeerBuffers>(sent, std::move(received), size(), rank());
  auto messages = std::make_shared<MpiExchange>(comm_, std::move(buffers), piece_,
                                                [own = rank()](int peer) { return peer != own; });
  newest_exchange_ = messages;
  return Work([messages = std::move(messages)] { messages->wait(); });
}

void MpiCommunicator::advance() {
  if (!newest_exchange_.expired()) mpi::keep_going(comm_);
}

void MpiCommunicator::barrier() { mpi::barrier(comm_); }

at::Tensor MpiCommunicator::allocate_common(std::int64_t elements, at::ScalarType type) {
  return allocate(elements, type);
}

at::Tensor MpiCommunicator::allocate(std::int64_t elements, at::ScalarType type) {
  return at::zeros({elements}, at::TensorOptions().dtype(type));
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key) const {
  return std::make_unique<MpiCommunicator>(comm_.split(color, key), piece_);
}

}  // namespace hortator::comm
