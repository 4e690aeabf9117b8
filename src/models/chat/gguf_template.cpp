#include "models/chat/gguf_template.hpp"

#include <utility>
#include <vector>

#include "formats/gguf/file.hpp"

namespace hortator::models::chat {
namespace {

constexpr const char* tokens_name = "tokenizer.ggml.tokens";

std::map<std::string, std::string> special_tokens(const formats::GgufHeader& header) {
  std::map<std::string, std::string> special;
  const auto* tokens = header.find<formats::GgufList>(tokens_name);
  if (tokens == nullptr) return special;
  for (const auto& [name, entry] : {std::pair("bos_token", "bos_token_id"),
                                    {"eos_token", "eos_token_id"},
                                    {"unk_token", "unknown_token_id"},
                                    {"pad_token", "padding_token_id"}}) {
    const auto* id = header.find<std::uint64_t>(std::string("tokenizer.ggml.") + entry);
    if (id != nullptr && *id < tokens->texts.size()) special[name] = tokens->texts[*id];
  }
  return special;
}

}  // namespace

TemplateText template_in_gguf(const std::filesystem::path& path) {
  const auto file = formats::gguf_file_at(path);
  if (file.empty()) return {};
  const auto header = formats::read_gguf_header(formats::FixedFile(file), {tokens_name});
  const auto* source = header.find<std::string>("tokenizer.chat_template");
  if (source == nullptr) return {};
  return {.source = *source, .variables = special_tokens(header)};
}

}  // namespace hortator::models::chat
