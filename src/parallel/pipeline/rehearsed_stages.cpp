#include "parallel/pipeline/rehearsed_stages.hpp"

#include <ATen/ops/empty.h>

#include <cstdint>
#include <hortator/error.hpp>
#include <map>

#include "comm/rehearsed/traffic.hpp"
#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "mpi/rehearsed_world.hpp"

namespace hortator::parallel {
namespace {

struct SentTensor {
  int type = -1;  ///< negative: undefined
  bool requires_grad = false;
  std::vector<std::int64_t> sizes = {};
};
using SentMessage = std::vector<SentTensor>;

struct SentMessages {
  std::map<int, SentMessage> by_stage;
  SentMessage newest;
};

// Used by the training thread only.
SentMessages& sent_messages() {
  static auto& messages = *new SentMessages;
  return messages;
}

// "6:1:4,128,64;-1:0:", with a type, whether it requires gradients, and sizes.
std::string text_of(const SentMessage& message) {
  std::vector<std::string> tensors;
  for (const auto& one : message)
    tensors.push_back(text::concat(one.type, ':', one.requires_grad ? 1 : 0, ':', text::join(one.sizes, ",")));
  return text::join(tensors, ";");
}

SentMessage message_of(const std::string& text) {
  SentMessage message;
  for (const auto& tensor : text::split(text, ';')) {
    const auto fields = text::split(tensor, ':');
    if (fields.size() != 3) continue;
    SentTensor one{.type = std::stoi(fields[0]), .requires_grad = fields[1] == "1"};
    for (const auto& size : text::split(fields[2], ',')) {
      if (!size.empty()) one.sizes.push_back(std::stoll(size));
    }
    message.push_back(std::move(one));
  }
  return message;
}

at::Tensor received(const SentTensor& sent, c10::Device device) {
  return at::empty(sent.sizes, at::TensorOptions().dtype(static_cast<at::ScalarType>(sent.type)).device(device));
}

SentMessage inputs_of_first_stage() {
  auto& messages = sent_messages();
  if (!messages.newest.empty()) return messages.newest;
  if (const auto given = core::variable("HORTATOR_STAGE_INPUTS")) return message_of(*given);
  throw Error({.what = "A rehearsal of a stage of a pipeline does not know the shapes of its inputs",
               .why = "the stage before it would send them",
               .hint = "rehearse a rank of the first stage, and pass what it sends (hortator rehearse does)"});
}

}  // namespace

void note_stage_message(int stage, const std::vector<at::Tensor>& tensors) {
  SentMessage message;
  for (const auto& tensor : tensors) {
    if (!tensor.defined()) {
      message.emplace_back();
      continue;
    }
    message.push_back({.type = static_cast<int>(tensor.scalar_type()),
                       .requires_grad = tensor.requires_grad(),
                       .sizes = tensor.sizes().vec()});
  }
  sent_messages().newest = message;
  sent_messages().by_stage[stage] = std::move(message);
}

void note_stage_traffic(const mpi::Communicator& ranks, const std::vector<at::Tensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : tensors)
    bytes += tensor.defined() ? static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size() : 0;
  comm::note_traffic(mpi::rehearsed_members(ranks), "send", bytes, bytes);
}

std::vector<at::Tensor> rehearsed_activations(int /*stage*/, c10::Device device) {
  std::vector<at::Tensor> tensors;
  for (const auto& one : inputs_of_first_stage())
    tensors.push_back(one.type < 0 ? at::Tensor() : received(one, device).requires_grad_(one.requires_grad));
  return tensors;
}

std::vector<at::Tensor> rehearsed_gradients(int stage, c10::Device device) {
  std::vector<at::Tensor> gradients;
  for (const auto& one : sent_messages().by_stage[stage])
    gradients.push_back(one.type < 0 || !one.requires_grad ? at::Tensor() : received(one, device));
  return gradients;
}

std::string noted_stage_message() { return text_of(sent_messages().newest); }

}  // namespace hortator::parallel
