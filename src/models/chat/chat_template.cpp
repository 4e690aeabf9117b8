#include <hortator/error.hpp>
#include <hortator/models/chat_template.hpp>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "formats/file/file_error.hpp"
#include "models/chat/gguf_template.hpp"
#include "models/chat/program.hpp"

namespace hortator::models {

struct ChatTemplate::Parts {
  chat::Block program;
  std::map<std::string, std::string> variables;
};

namespace {

using chat::Json;

/// The object in a file; an empty one if there is no such file.
Json read_json(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return Json::object();
  const auto content = core::read_at_most(file, core::max_record_bytes);
  auto json = content ? core::parse_record<Json>(*content) : Json();
  if (json.is_object()) return json;
  throw formats::FileError({.what = text::concat(file, " cannot be read, or is not a JSON object"),
                            .why = "it names the special tokens that the chat template writes",
                            .hint = "copy it again"});
}

/// The template in tokenizer_config.json: a text, or a list in which one is named default.
std::string listed_template(const Json& config) {
  const auto found = config.is_object() ? config.find("chat_template") : config.end();
  if (!config.is_object() || found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) return "";
  for (const auto& one : *found) {
    const bool is_named = one.is_object() && one.contains("name") && one.contains("template");
    if (is_named && one["name"] == "default" && one["template"].is_string()) return one["template"].get<std::string>();
  }
  return "";
}

/// bos_token and so on: each a text, or an object with its content.
std::map<std::string, std::string> special_tokens(const Json& config) {
  std::map<std::string, std::string> tokens;
  if (!config.is_object()) return tokens;
  for (const auto& [name, value] : config.items()) {
    if (!name.ends_with("_token")) continue;
    if (value.is_string()) tokens[name] = value.get<std::string>();
    if (value.is_object() && value.contains("content") && value["content"].is_string())
      tokens[name] = value["content"].get<std::string>();
  }
  return tokens;
}

chat::TemplateText template_in(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) return {};
  const auto config = read_json(folder / "tokenizer_config.json");
  const auto file = folder / "chat_template.jinja";
  const auto own = core::read_at_most(file, core::max_record_bytes);
  if (!own && std::filesystem::exists(file))
    throw formats::FileError({.what = text::concat(file, " cannot be read, or is too large")});
  return {.source = own ? *own : listed_template(config), .variables = special_tokens(config)};
}

}  // namespace

ChatTemplate::ChatTemplate(const std::filesystem::path& path) {
  auto found = template_in(path);
  if (found.source.empty()) found = chat::template_in_gguf(path);
  if (found.source.empty()) {
    throw formats::FileError(
        {.what = text::concat(path, " has no chat template"),
         .why = "there is neither chat_template.jinja nor 'chat_template' in tokenizer_config.json or in a GGUF file",
         .hint = "use a model that was trained on conversations, or write the prompt yourself"});
  }
  *this = from_text(found.source, std::move(found.variables));
}

ChatTemplate ChatTemplate::from_text(const std::string& source, std::map<std::string, std::string> variables) {
  if (!core::is_utf8(source)) chat::fail("it is not valid UTF-8");
  return ChatTemplate(std::make_shared<const Parts>(Parts{chat::parse(source), std::move(variables)}));
}

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages, bool add_generation_prompt) const {
  auto all = Json::array();
  for (const auto& [role, content] : messages) {
    if (!core::is_utf8(role) || !core::is_utf8(content)) {
      throw UsageError({.what = text::concat("Message ", all.size(), " is not valid UTF-8"),
                        .hint = "convert it to UTF-8, or remove the bytes that are not"});
    }
    all.push_back({{"role", role}, {"content", content}});
  }
  return render_json(all.dump(), add_generation_prompt);
}

std::string ChatTemplate::render_json(const std::string& messages, bool add_generation_prompt) const {
  auto list = core::parse_record<Json>(messages);
  if (!list.is_array())
    throw UsageError(
        {.what = "The messages are not a JSON list", .hint = "expected [{\"role\": ..., \"content\": ...}]"});
  chat::Scope scope{.names = chat::functions()};
  for (const auto& [name, value] : parts_->variables) scope.names[name] = Json(value);
  scope.names["messages"] = std::move(list);
  scope.names["add_generation_prompt"] = Json(add_generation_prompt);
  scope.names["tools"] = scope.names["documents"] = Json();
  chat::Rendering rendering;
  rendering.scope = &scope;
  chat::run(parts_->program, rendering);
  return std::move(rendering.out);
}

}  // namespace hortator::models
