#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace hortator::models::chat {

/// The text of a chat template, and the special tokens that it may name: "bos_token" and so on.
struct TemplateText {
  std::string source = {};
  std::map<std::string, std::string> variables = {};
};

/// The template in the metadata of a GGUF file, or of the only one in a folder. Empty if there is none.
TemplateText template_in_gguf(const std::filesystem::path& path);

}  // namespace hortator::models::chat
