#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Strings as Python's methods change them.
namespace hortator::models::chat {

std::string stripped(const std::string& text, std::string_view removed, bool left, bool right);
constexpr std::string_view white_space = " \t\n\r\f\v";

/// The parts between separators, at most `most` cuts; negative: all. An empty separator means runs of white space.
std::vector<std::string> parts_of(const std::string& text, const std::string& separator, std::int64_t most);
std::string replaced(std::string text, const std::string& from, const std::string& to, std::int64_t most);

enum class LetterCase { upper, lower, title, capitalised };
/// Throws UsageError for letters that are not of ASCII.
std::string in_case(std::string text, LetterCase letter_case);

}  // namespace hortator::models::chat
