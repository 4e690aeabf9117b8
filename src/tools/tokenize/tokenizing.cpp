#include "tools/tokenize/tokenizing.hpp"

#include <cstring>
#include <fstream>
#include <functional>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/text/json.hpp"
#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

/// Calls `use` with some lines at a time, and the number of the first. Throws UsageError if the file cannot be read.
void for_lines(const std::filesystem::path& file,
               const std::function<void(std::vector<std::string>& lines, std::uint64_t first)>& use) {
  constexpr std::size_t max_lines = 4096, max_bytes = std::size_t{1} << 22;
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file))
    throw UsageError({.what = text::concat("Cannot read ", text::quote(file.string()))});
  std::uint64_t first = 1;
  std::size_t bytes = 0;
  std::vector<std::string> lines;
  const auto flush = [&] {
    use(lines, first);
    first += lines.size();
    lines.clear();
    bytes = 0;
  };
  for (std::string line; std::getline(in, line);) {
    bytes += line.size();
    lines.push_back(std::move(line));
    if (lines.size() == max_lines || bytes > max_bytes) flush();
  }
  if (in.bad()) throw Error({.what = text::concat("Reading ", text::quote(file.string()), " failed")});
  if (!lines.empty()) flush();
}

[[noreturn]] void refuse_line(const TokenizeOptions& options, std::uint64_t line, const Problem& problem) {
  throw UsageError({.what = text::concat(options.input.string(), ", line ", line, ": ", problem.what),
                    .why = problem.why,
                    .hint = problem.hint});
}

models::TextInput input_of(std::string& line, const TokenizeOptions& options, std::uint64_t number) {
  if (!options.has_pairs) return {.text = std::move(line)};
  const auto tab = line.find('\t');
  if (tab == std::string::npos)
    refuse_line(options, number, {.what = "expected two texts with a tab between them", .hint = "leave out --pairs"});
  return {.text = line.substr(0, tab), .pair = line.substr(tab + 1)};
}

/// The encodings of some lines. If one cannot be encoded, finds out which.
std::vector<models::Encoding> encodings_of(const models::Tokenizer& tokenizer, const TokenizeOptions& options,
                                           std::vector<std::string>& lines, std::uint64_t first) {
  std::vector<models::TextInput> inputs;
  for (std::size_t i = 0; i < lines.size(); ++i) inputs.push_back(input_of(lines[i], options, first + i));
  try {
    return tokenizer.encode_batch(inputs, options.adds_special_tokens, options.threads);
  } catch (const UsageError&) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      try {
        tokenizer.encode(inputs[i], options.adds_special_tokens);
      } catch (const UsageError& error) {
        refuse_line(options, first + i, {.what = error.what()});
      }
    }
    throw;
  }
}

std::string json_line(const models::Encoding& encoding, bool has_pairs) {
  auto line = nlohmann::ordered_json::object();
  line["ids"] = encoding.ids;
  line["offsets"] = encoding.offsets;
  if (has_pairs) line["type_ids"] = encoding.type_ids;
  return line.dump() + "\n";
}

std::vector<std::int64_t> ids_of(const std::string& line, const TokenizeOptions& options, std::uint64_t number) {
  const auto json = core::parse_record(line);
  const auto& list = json.is_object() && json.contains("ids") ? json["ids"] : json;
  std::vector<std::int64_t> ids;
  bool is_valid = list.is_array();
  for (const auto& id : is_valid ? list : nlohmann::json::array()) {
    is_valid = is_valid && id.is_number_integer();
    if (is_valid) ids.push_back(id.get<std::int64_t>());
  }
  if (!is_valid)
    refuse_line(options, number,
                {.what = "expected a JSON list of ids, or an object with 'ids'", .hint = "leave out --decode"});
  return ids;
}

}  // namespace

TokenizeCounts write_encodings(const models::Tokenizer& tokenizer, const TokenizeOptions& options, std::ostream& out) {
  TokenizeCounts counts;
  for_lines(options.input, [&](std::vector<std::string>& lines, std::uint64_t first) {
    for (const auto& encoding : encodings_of(tokenizer, options, lines, first)) {
      out << json_line(encoding, options.has_pairs);
      counts.tokens += encoding.ids.size();
      ++counts.texts;
    }
  });
  return counts;
}

TokenizeCounts write_packed(const models::Tokenizer& tokenizer, const TokenizeOptions& options,
                            std::optional<std::int64_t> end, std::size_t bytes, std::ostream& out) {
  TokenizeCounts counts;
  for_lines(options.input, [&](std::vector<std::string>& lines, std::uint64_t first) {
    for (auto& encoding : encodings_of(tokenizer, options, lines, first)) {
      if (end) encoding.ids.push_back(*end);
      std::string packed(encoding.ids.size() * bytes, '\0');
      for (std::size_t i = 0; i < encoding.ids.size(); ++i) std::memcpy(&packed[i * bytes], &encoding.ids[i], bytes);
      out << packed;
      counts.tokens += encoding.ids.size();
      ++counts.texts;
    }
  });
  return counts;
}

TokenizeCounts write_decoded(const models::Tokenizer& tokenizer, const TokenizeOptions& options, std::ostream& out) {
  TokenizeCounts counts;
  for_lines(options.input, [&](const std::vector<std::string>& lines, std::uint64_t first) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto ids = ids_of(lines[i], options, first + i);
      out << nlohmann::json({{"text", tokenizer.decode(ids, /*skip_special_tokens=*/true)}}).dump() << '\n';
      counts.tokens += ids.size();
      ++counts.texts;
    }
  });
  return counts;
}

}  // namespace hortator::tools
