#pragma once

#include <filesystem>
#include <hortator/export.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hortator::models {

/// What someone says in a conversation. Roles are those of the template: system, user, assistant.
struct ChatMessage {
  std::string role = {};
  std::string content = {};
};

/// How a checkpoint writes a conversation as one text: its template in the part of Jinja that templates use. Immutable,
/// so threads may share it.
class HORTATOR_API ChatTemplate {
 public:
  /// Reads the template of a checkpoint's folder: chat_template.jinja, `chat_template` in tokenizer_config.json, or the
  /// one in the folder's GGUF file, which the path may also name. Throws UsageError with the line of what is not
  /// supported.
  explicit ChatTemplate(const std::filesystem::path& path);
  /// A template from its text; `variables` are the special tokens that it names, such as bos_token.
  static ChatTemplate from_text(const std::string& source, std::map<std::string, std::string> variables = {});

  /// The conversation as text. Encode it without special tokens: the template has written them. With
  /// `add_generation_prompt` it ends with the beginning of an answer. Throws UsageError if the template refuses it.
  std::string render(const std::vector<ChatMessage>& messages, bool add_generation_prompt = true) const;
  /// The same for messages with other fields, as JSON: a list of objects.
  std::string render_json(const std::string& messages, bool add_generation_prompt = true) const;

  struct Parts;

 private:
  explicit ChatTemplate(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const Parts> parts_;
};

}  // namespace hortator::models
