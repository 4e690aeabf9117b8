#include "interactive.hpp"

#include <cstdint>
#include <hortator/error.hpp>
#include <hortator/models/chat_template.hpp>
#include <hortator/models/generate_texts.hpp>
#include <hortator/models/pretrained.hpp>
#include <hortator/state.hpp>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pretrained.hpp"

namespace generate {
namespace {

namespace models = hortator::models;

/// What has been said so far, if the prompts are messages.
class Conversation {
 public:
  explicit Conversation(const Options& options) {
    if (options.chat) chat_.emplace(options.checkpoint);
  }

  std::string prompt(const std::string& line) {
    if (!chat_) return line;
    messages_.push_back({.role = "user", .content = line});
    return chat_->render(messages_);
  }
  void add_answer(std::string text) {
    if (chat_) messages_.push_back({.role = "assistant", .content = std::move(text)});
  }

 private:
  std::optional<models::ChatTemplate> chat_;
  std::vector<models::ChatMessage> messages_ = {};
};

}  // namespace

void converse(const Options& options) {
  const hortator::State state({.cpu = options.cpu});
  if (state.num_processes() > 1)
    throw hortator::UsageError(
        {.what = "--interactive: expected one rank, got " + std::to_string(state.num_processes())});
  const auto model = loaded(options);
  model->to(state.device());
  const models::Tokenizer tokenizer(options.checkpoint);
  models::require_valid(*model, options.generation);
  Conversation conversation(options);
  models::TextOptions text{
      .generation = options.generation, .stop_strings = options.stop, .add_special_tokens = !options.chat};
  text.on_text = [](std::size_t, std::string_view more) { std::cout << more << std::flush; };
  std::uint64_t number = 0;
  std::cout << "> " << std::flush;
  for (std::string line; std::getline(std::cin, line); std::cout << "\n> " << std::flush) {
    if (line.empty()) continue;
    text.generation.prompt_numbers = {number++};  // a line that comes again gets other random tokens
    conversation.add_answer(models::generate_texts(*model, tokenizer, {conversation.prompt(line)}, text).front());
  }
  std::cout << '\n';
}

}  // namespace generate
