#include <algorithm>
#include <cstring>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "models/tokenizer/characters/unicode.hpp"
#include "models/tokenizer/parts.hpp"

namespace hortator::models {
namespace {

using Texts = std::vector<std::string>;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  if (from.empty()) return;
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Whether the bytes are valid UTF-8 but for further bytes of the last character.
bool begins_character(std::string_view bytes) {
  for (const char last : {'\x80', '\x90', '\xA0', '\xBF'}) {
    for (std::size_t more = 1; more <= 2; ++more) {
      const auto whole = std::string(bytes) + last + std::string(more - 1, '\x80');
      if (core::is_utf8(whole)) return true;
    }
  }
  return false;
}

/// UTF-8 with the replacement character for each maximal part that is not valid.
std::string lossy_utf8(const std::string& bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t length = 1;
    while (length <= 4 && at + length <= bytes.size() && !core::is_utf8(std::string_view(bytes).substr(at, length)))
      ++length;
    if (length <= 4 && at + length <= bytes.size()) {
      text += bytes.substr(at, length);
      at += length;
      continue;
    }
    // the longest beginning of a character counts as one
    std::size_t wrong = 1;
    for (std::size_t more = 2; more <= 3 && at + more <= bytes.size(); ++more)
      if (begins_character(std::string_view(bytes).substr(at, more))) wrong = more;
    text += "\uFFFD";
    at += wrong;
  }
  return text;
}

Texts decode_bytes(const Texts& tokens) {
  std::string bytes;
  for (const auto& token : tokens) {
    std::string part;
    bool is_mapped = true;
    for (const auto c : code_points(token)) {
      const auto byte = byte_of_character(c);
      is_mapped = is_mapped && byte.has_value();
      if (byte) part.push_back(static_cast<char>(*byte));
    }
    bytes += is_mapped ? part : token;
  }
  return {lossy_utf8(bytes)};
}

void clean_up(std::string& text) {
  constexpr std::pair<const char*, const char*> changes[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : changes) replace_all(text, from, to);
}

Decoder word_piece_decoder(const ConfigFields& fields) {
  const auto prefix = fields.text("prefix", "##");
  const bool cleans = fields.flag("cleanup", true);
  return [=](Texts tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      auto& token = tokens[i];
      if (i > 0) token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
      if (cleans) clean_up(token);
    }
    return tokens;
  };
}

Decoder metaspace_decoder(const ConfigFields& fields) {
  const auto mark = fields.text("replacement", "\u2581");
  const auto scheme = fields.text("prepend_scheme", fields.flag("add_prefix_space", true) ? "always" : "never");
  for (const auto* name : {"split", "str_rep"}) fields.skip(name);
  return [=](Texts tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], mark, i == 0 && scheme != "never" ? "" : " ");
    }
    return tokens;
  };
}

std::optional<char> fallback_byte(const std::string& token) {
  constexpr std::size_t length = 6;  // <0x0A>
  if (token.size() != length || !token.starts_with("<0x") || token.back() != '>') return {};
  int value = 0;
  for (const auto digit : token.substr(3, 2)) {
    const auto* digits = "0123456789abcdef";
    const auto* found = std::strchr(digits, digit >= 'A' && digit <= 'F' ? digit + 32 : digit);
    if (found == nullptr || digit == 0) return {};
    value = 16 * value + static_cast<int>(found - digits);
  }
  return static_cast<char>(value);
}

Texts decode_fallback_bytes(Texts tokens) {
  Texts all;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (core::is_utf8(bytes)) {
      all.push_back(bytes);
    } else {
      for (std::size_t i = 0; i < bytes.size(); ++i) all.emplace_back("\uFFFD");
    }
    bytes.clear();
  };
  for (auto& token : tokens) {
    if (const auto byte = fallback_byte(token)) {
      bytes.push_back(*byte);
      continue;
    }
    flush();
    all.push_back(std::move(token));
  }
  flush();
  return all;
}

Decoder strip_decoder(const ConfigFields& fields) {
  const auto content = text_field(fields, "content");
  fields.require(code_points(content).size() == 1, "content", "expected one character");
  const auto count = [&](const char* name) {
    const auto number = fields.token(name).value_or(0);
    fields.require(number >= 0, name, "expected a number from 0");
    return static_cast<std::size_t>(number);
  };
  const auto start = count("start");
  const auto stop = count("stop");
  return [=](Texts tokens) {
    for (auto& token : tokens) {
      for (std::size_t i = 0; i < start && token.starts_with(content); ++i) token = token.substr(content.size());
      for (std::size_t i = 0; i < stop && token.ends_with(content); ++i) token.resize(token.size() - content.size());
    }
    return tokens;
  };
}

Decoder decoder_sequence(const ConfigFields& fields) {
  std::vector<Decoder> all;
  for (const auto& one : fields.objects("decoders")) all.push_back(make_decoder(one));
  return [all](Texts tokens) {
    for (const auto& one : all) tokens = one(std::move(tokens));
    return tokens;
  };
}

Decoder replace_decoder(const ConfigFields& fields) {
  const auto pattern = make_pattern(fields.object("pattern"));
  const auto content = code_points(fields.text("content", ""));
  constexpr std::size_t max_bytes = std::size_t{1} << 24;
  return [=](Texts tokens) {
    for (auto& token : tokens) {
      AlignedText text(code_points(token));
      const auto ranges = pattern(text.text());
      if (ranges.empty()) continue;
      text.replace(ranges, content);
      auto changed = to_utf8(text.text());
      fields.require(changed.size() <= std::max(token.size(), max_bytes), "content", "it makes texts too long");
      token = std::move(changed);
    }
    return tokens;
  };
}

Decoder suffix_decoder(const ConfigFields& fields) {
  const auto suffix = fields.text("suffix", "</w>");
  return [=](Texts tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
    return tokens;
  };
}

Decoder decoder_of_type(const ConfigFields& fields, const std::string& type) {
  if (type == "Sequence") return decoder_sequence(fields);
  if (type == "WordPiece") return word_piece_decoder(fields);
  if (type == "Metaspace") return metaspace_decoder(fields);
  if (type == "Strip") return strip_decoder(fields);
  if (type == "Replace") return replace_decoder(fields);
  if (type == "BPEDecoder") return suffix_decoder(fields);
  if (type == "ByteFallback") return decode_fallback_bytes;
  if (type == "Fuse") return [](const Texts& tokens) { return Texts{text::join(tokens, "")}; };
  for (const auto* name : {"add_prefix_space", "trim_offsets", "use_regex"}) fields.skip(name);
  return decode_bytes;
}

}  // namespace

Decoder make_decoder(const ConfigFields& fields) {
  if (fields.empty()) return [](const Texts& tokens) { return Texts{text::join(tokens, " ")}; };
  const auto type = text_field(fields, "type");
  fields.require_one_of(
      "type", type,
      {"Sequence", "ByteLevel", "WordPiece", "Metaspace", "Strip", "Replace", "BPEDecoder", "ByteFallback", "Fuse"});
  auto decoder = decoder_of_type(fields, type);
  fields.require_all_used();
  return decoder;
}

}  // namespace hortator::models
