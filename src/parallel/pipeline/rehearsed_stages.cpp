#include "parallel/pipeline/rehearsed_stages.hpp"

#include <ATen/ops/empty.h>

#include <cstdint>
#include <hortator/error.hpp>
#include <map>
#include <utility>

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
  std::map<int, std::vector<SentMessage>> to_stage;  ///< in the order in which they were sent
  std::map<int, std::size_t> gradients_from;         ///< how many have come back
  std::map<int, std::size_t> activations_of;         ///< how many a stage has got
  std::map<int, SentMessage> foreseen;               ///< of each stage, its next message
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

// "3*MESSAGE|1*MESSAGE": equal ones that follow each other once.
std::vector<SentMessage> messages_of(const std::string& text) {
  std::vector<SentMessage> messages;
  for (const auto& run : text::split(text, '|')) {
    const auto star = run.find('*');
    if (star == std::string::npos) continue;
    messages.insert(messages.end(), std::stoul(run.substr(0, star)), message_of(run.substr(star + 1)));
  }
  return messages;
}

SentMessage shapes_of(const std::vector<at::Tensor>& tensors) {
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
  return message;
}

at::Tensor received(const SentTensor& sent, c10::Device device) {
  return at::empty(sent.sizes, at::TensorOptions().dtype(static_cast<at::ScalarType>(sent.type)).device(device));
}

// What the first stage sends in its order: this rank's own messages, or those of the first stage's rehearsal.
const std::vector<SentMessage>& messages_of_first_stage() {
  const auto& own = sent_messages().to_stage;
  if (!own.empty() && own.begin()->first == 1) return own.begin()->second;
  static const auto given = messages_of(core::variable("HORTATOR_STAGE_INPUTS").value_or(""));
  if (!given.empty()) return given;
  throw Error({.what = "A rehearsal of a stage of a pipeline does not know the shapes of its inputs",
               .why = "the stage before it would send them",
               .hint = "rehearse a rank of the first stage, and pass what it sends (hortator rehearse does)"});
}

}  // namespace

void note_stage_message(int stage, const std::vector<at::Tensor>& tensors) {
  sent_messages().to_stage[stage].push_back(shapes_of(tensors));
}

void foresee_activations(int stage, const std::vector<at::Tensor>& tensors) {
  auto message = shapes_of(tensors);
  for (auto& one : message)
    one.requires_grad = one.type >= 0 && at::isFloatingType(static_cast<at::ScalarType>(one.type));
  sent_messages().foreseen[stage] = std::move(message);
}

void note_stage_traffic(const mpi::Communicator& ranks, const std::vector<at::Tensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : tensors)
    bytes += tensor.defined() ? static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size() : 0;
  comm::note_traffic(mpi::rehearsed_members(ranks), "send", bytes, bytes);
}

std::vector<at::Tensor> rehearsed_activations(int stage, c10::Device device) {
  const auto foreseen = sent_messages().foreseen.extract(stage);
  const auto number = sent_messages().activations_of[stage]++;
  const auto message = [&]() -> const SentMessage& {
    if (foreseen) return foreseen.mapped();
    const auto& messages = messages_of_first_stage();
    return messages[number % messages.size()];
  };
  std::vector<at::Tensor> tensors;
  for (const auto& one : message())
    tensors.push_back(one.type < 0 ? at::Tensor() : received(one, device).requires_grad_(one.requires_grad));
  return tensors;
}

std::vector<at::Tensor> rehearsed_gradients(int stage, c10::Device device) {
  const auto number = sent_messages().gradients_from[stage]++;
  std::vector<at::Tensor> gradients;
  for (const auto& one : sent_messages().to_stage[stage].at(number))
    gradients.push_back(one.type < 0 || !one.requires_grad ? at::Tensor() : received(one, device));
  return gradients;
}

std::string noted_stage_messages() {
  const auto& all = sent_messages().to_stage;
  if (all.empty()) return "";
  std::vector<std::string> runs;
  std::string before;
  std::size_t count = 0;
  const auto end_run = [&] {
    if (count > 0) runs.push_back(text::concat(count, '*', before));
    count = 0;
  };
  for (const auto& message : all.begin()->second) {
    auto text = text_of(message);
    if (text != before) end_run();
    before = std::move(text);
    ++count;
  }
  end_run();
  return text::join(runs, "|");
}

}  // namespace hortator::parallel
