#include "parallel/pipeline/stage_links.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <array>
#include <cstdint>
#include <hortator/error.hpp>
#include <memory>
#include <span>

#include "core/text/text.hpp"
#include "mpi/rehearsed_world.hpp"
#include "parallel/pipeline/rehearsed_stages.hpp"

namespace hortator::parallel {
namespace {

constexpr std::size_t max_tensors = 8, max_dims = 8;

/// Describes the tensors of a message, which follow it.
struct Header {
  struct Described {
    std::int64_t type = -1;  ///< negative: undefined
    std::int64_t requires_grad = 0;
    std::int64_t dims = 0;
    std::array<std::int64_t, max_dims> sizes = {};
  };
  std::int64_t failed = 0;
  std::int64_t count = 0;
  std::array<Described, max_tensors> tensors = {};
};

void require_room(const StageTensors& tensors) {
  if (tensors.size() > max_tensors) {
    throw UsageError({.what = text::concat("A stage of a pipeline sends ", tensors.size(), " tensors"),
                      .why = text::concat("a message has room for ", max_tensors),
                      .hint = "join some of them, or compute them from the inputs in each stage"});
  }
  for (const auto& tensor : tensors) {
    if (!tensor.defined() || static_cast<std::size_t>(tensor.dim()) <= max_dims) continue;
    throw UsageError({.what = text::concat("A stage of a pipeline sends a tensor of ", tensor.dim(), " dimensions"),
                      .why = text::concat("a message describes at most ", max_dims),
                      .hint = "flatten some of them"});
  }
}

Header describe(const StageTensors& tensors) {
  require_room(tensors);
  Header header{.count = static_cast<std::int64_t>(tensors.size())};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& tensor = tensors[i];
    if (!tensor.defined()) continue;
    auto& described = header.tensors[i];
    described.type = static_cast<std::int64_t>(tensor.scalar_type());
    described.requires_grad = tensor.requires_grad() ? 1 : 0;
    described.dims = tensor.dim();
    for (std::int64_t dim = 0; dim < tensor.dim(); ++dim)
      described.sizes[static_cast<std::size_t>(dim)] = tensor.size(dim);
  }
  return header;
}

at::Tensor make(const Header::Described& described) {
  const auto type = static_cast<at::ScalarType>(described.type);
  return at::empty(at::IntArrayRef(described.sizes.data(), static_cast<std::size_t>(described.dims)),
                   at::TensorOptions().dtype(type));
}

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace

StageLinks::StageLinks(const mpi::Communicator& ranks, c10::Device device) : messages_(ranks), device_(device) {}

void StageLinks::send_activations(int stage, const std::optional<StageTensors>& tensors) {
  if (mpi::rehearsed_world() && tensors) note_stage_message(stage, *tensors);
  send(mpi::Messages::Peer::next, 2 * stage, tensors);
}
std::optional<StageTensors> StageLinks::receive_activations(int stage) {
  if (mpi::rehearsed_world()) return rehearsed_activations(stage, device_);
  return receive(mpi::Messages::Peer::previous, 2 * stage);
}
void StageLinks::send_gradients(int stage, const std::optional<StageTensors>& gradients) {
  send(mpi::Messages::Peer::previous, 2 * stage + 1, gradients);
}
std::optional<StageTensors> StageLinks::receive_gradients(int stage) {
  if (mpi::rehearsed_world()) return rehearsed_gradients(stage, device_);
  return receive(mpi::Messages::Peer::next, 2 * stage + 1);
}

void StageLinks::send(mpi::Messages::Peer to, int tag, const std::optional<StageTensors>& tensors) {
  const at::NoGradGuard no_grad;
  if (mpi::rehearsed_world()) note_stage_traffic(messages_.ranks(), tensors.value_or(StageTensors()));
  const auto header = std::make_shared<Header>(tensors ? describe(*tensors) : Header{.failed = 1});
  messages_.send(to, tag, std::as_bytes(std::span(header.get(), 1)), header);
  if (!tensors) return;
  for (const auto& tensor : *tensors) {
    if (!tensor.defined()) continue;
    const auto plain = tensor.detach().to(at::kCPU).resolve_conj().resolve_neg();
    const auto kept = std::make_shared<at::Tensor>(plain.contiguous());
    messages_.send(to, tag, bytes_of(*kept), kept);
  }
}

std::optional<StageTensors> StageLinks::receive(mpi::Messages::Peer from, int tag) {
  const at::NoGradGuard no_grad;
  Header header;
  messages_.receive(from, tag, std::as_writable_bytes(std::span(&header, 1)));
  if (header.failed != 0) return {};
  StageTensors tensors(static_cast<std::size_t>(header.count));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& described = header.tensors[i];
    if (described.type < 0) continue;
    const auto tensor = make(described);
    messages_.receive(from, tag, {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()});
    tensors[i] = tensor.to(device_).requires_grad_(described.requires_grad != 0);
  }
  return tensors;
}

}  // namespace hortator::parallel
