#include "documents.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <hortator/datasets/arrow_rows.hpp>
#include <hortator/error.hpp>
#include <hortator/models/tokenizer.hpp>
#include <iterator>
#include <memory>
#include <numeric>

namespace language_model {
namespace {

using hortator::UsageError;
using Tokens = std::vector<std::int64_t>;

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), {}};
  if (!in || std::filesystem::is_directory(file))
    throw UsageError({.what = "--text: cannot read '" + file.string() + "'", .hint = "name text files"});
  return content;
}

/// Splits a file into its documents. Empty lines are none.
std::vector<std::string> documents_in(std::string content, const std::string& kind) {
  if (kind == "file") return {std::move(content)};
  std::vector<std::string> documents;
  for (std::size_t begin = 0; begin < content.size();) {
    const auto end = std::min(content.find('\n', begin), content.size());
    if (end > begin) documents.push_back(content.substr(begin, end - begin));
    begin = end + 1;
  }
  return documents;
}

/// The rows of a column of a Parquet or Arrow file. Empty ones are no documents.
std::vector<std::string> documents_of(const std::filesystem::path& file, const std::string& column) {
  const hortator::ArrowRows rows(file, {.columns = {column}, .null_value = 0});
  std::vector<std::string> documents;
  constexpr std::int64_t step = 1024;
  for (std::int64_t first = 0; first < rows.size(); first += step) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(std::min(step, rows.size() - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    auto texts = std::move(rows.get_batch(numbers).texts);
    if (!texts.contains(column))
      throw UsageError({.what = "--column: '" + column + "' of '" + file.string() + "' does not hold texts"});
    std::ranges::copy_if(texts[column], std::back_inserter(documents), [](const auto& text) { return !text.empty(); });
  }
  return documents;
}

/// The documents of a file, which its name's end says how to read.
std::vector<std::string> read_file(const std::filesystem::path& file, const TextOptions& options) {
  const auto ending = file.extension();
  if (ending == ".parquet" || ending == ".arrow" || ending == ".feather") return documents_of(file, options.column);
  return documents_in(content_of(file), options.documents);
}

Tokens bytes_of(const std::string& text) {
  Tokens tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

using Encode = std::function<Tokens(const std::string&)>;

Encode encoder(const TextOptions& options) {
  if (options.bytes) return bytes_of;
  // documents are neither cut nor padded, whatever tokenizer.json says
  const auto tokenizer =
      std::make_shared<hortator::models::Tokenizer>(hortator::models::Tokenizer(options.model).without_limits());
  return [tokenizer](const std::string& text) { return tokenizer->encode(text, /*add_special_tokens=*/false).ids; };
}

}  // namespace

std::vector<at::Tensor> read_documents(const TextOptions& options, const hortator::models::ModelConfig& config) {
  constexpr std::int64_t bytes = 256;
  if (options.bytes && config.vocabulary < bytes)
    throw UsageError(
        {.what = "--bytes: the model has " + std::to_string(config.vocabulary) + " tokens, expected at least 256"});
  const auto encode = encoder(options);
  std::vector<at::Tensor> documents;
  for (const auto& file : options.files) {
    for (const auto& text : read_file(file, options)) {
      const auto tokens = encode(text);
      for (const auto token : tokens) {
        if (token >= config.vocabulary)
          throw UsageError({.what = "The tokenizer has a token " + std::to_string(token) + ", and the model only " +
                                    std::to_string(config.vocabulary),
                            .hint = "the tokenizer.json of the folder belongs to another model"});
      }
      documents.push_back(at::tensor(tokens, at::kLong));
    }
  }
  return documents;
}

}  // namespace language_model
