#include <bit>
#include <fstream>
#include <hortator/error.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "tools/tokenize/tokenizing.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

Options tokenize_options() {
  Options options;
  auto add = options.named.add_options();
  add("tokenizer", po::value<std::string>()->value_name("PATH"),
      "a tokenizer.json, or the folder of a checkpoint that has one");
  add("output,o", po::value<std::string>()->value_name("FILE"), "the file to write");
  add("pairs", "each line is two texts with a tab between them");
  add("packed", "write the numbers of the tokens alone, one after the other (2 or 4 bytes each), for TokenWindows");
  add("end", po::value<std::string>()->value_name("TOKEN"), "with --packed: a token after each line, such as </s>");
  add("decode", "the reverse: each line is a JSON list of ids, or an object with 'ids'");
  add("no-special-tokens", "leave out the tokens that the tokenizer adds to texts");
  add("threads", po::value<int>()->default_value(1)->value_name("N"), "threads that encode");
  add("help,h", "print this help");
  return options;
}

int print_tokenize_help() {
  std::cout
      << "usage: hortator tokenize --tokenizer PATH IN -o OUT [options]\n\n"
         "Turns each line of a file into tokens: a JSON line with the ids and, for each token, where it begins and\n"
         "ends in the text (in characters). Texts are neither cut nor padded, whatever the tokenizer's file says.\n\n"
         "  hortator tokenize --tokenizer gpt2/ text.txt -o text.jsonl\n"
         "  hortator tokenize --tokenizer gpt2/ --packed --end '<|endoftext|>' text.txt -o text.bin\n"
         "  hortator tokenize --tokenizer gpt2/ --decode text.jsonl -o again.jsonl\n\n"
         "exit code: 0; 1 a file cannot be read or written; 2 wrong usage, or a line that is not valid\n\n"
      << tokenize_options().named;
  return 0;
}

std::string required(const po::variables_map& values, const char* name, const char* what, const char* hint) {
  if (!values.contains(name)) throw UsageError({.what = what, .hint = hint});
  return values[name].as<std::string>();
}

void refuse_together(const po::variables_map& values, const char* one, const char* other) {
  if (values.contains(one) && values.contains(other))
    throw UsageError({.what = text::concat("--", one, " and --", other, " were given together")});
}

TokenizeOptions plan_of(const po::variables_map& values) {
  for (const auto* other : {"pairs", "packed", "end", "no-special-tokens"}) refuse_together(values, "decode", other);
  refuse_together(values, "packed", "pairs");
  if (values.contains("end") && !values.contains("packed"))
    throw UsageError({.what = "--end was given without --packed", .hint = "add --packed"});
  const auto threads = values["threads"].as<int>();
  if (threads < 1) throw UsageError({.what = text::concat("--threads: expected a number from 1, got ", threads)});
  const auto inputs =
      values.contains("input") ? values["input"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (inputs.size() != 1)
    throw UsageError(
        {.what = text::concat("Expected one input file, got ", inputs.size()), .hint = "hortator tokenize --help"});
  return {.input = inputs.front(),
          .has_pairs = values.contains("pairs"),
          .adds_special_tokens = !values.contains("no-special-tokens"),
          .threads = static_cast<std::size_t>(threads)};
}

std::optional<std::int64_t> end_of(const po::variables_map& values, const models::Tokenizer& tokenizer) {
  if (!values.contains("end")) return {};
  const auto token = values["end"].as<std::string>();
  const auto id = tokenizer.id_of(token);
  if (!id) throw UsageError({.what = text::concat("--end: the tokenizer has no token ", text::quote(token))});
  return id;
}

struct Written {
  TokenizeCounts counts;
  std::string as;
};

Written write(const po::variables_map& values, const TokenizeOptions& plan, std::ostream& out) {
  static_assert(std::endian::native == std::endian::little);
  const auto tokenizer =
      models::Tokenizer(required(values, "tokenizer", "The tokenizer is missing", "give --tokenizer PATH"))
          .without_limits();
  if (values.contains("decode")) return {write_decoded(tokenizer, plan, out), "JSON lines"};
  if (!values.contains("packed")) return {write_encodings(tokenizer, plan, out), "JSON lines"};
  constexpr std::int64_t most = 1 << 16;
  const bool is_short = tokenizer.largest_id() < most;
  return {write_packed(tokenizer, plan, end_of(values, tokenizer), is_short ? 2 : 4, out),
          is_short ? "uint16" : "uint32"};
}

}  // namespace

int tokenize_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(tokenize_options(), "input"));
  if (values.contains("help")) return print_tokenize_help();
  const auto plan = plan_of(values);
  const std::filesystem::path target = required(values, "output", "The output file is missing", "give -o FILE");
  const auto aside = target.string() + ".part";
  std::ofstream out(aside, std::ios::binary);
  if (!out) throw Error({.what = text::concat("Cannot write ", text::quote(aside))});
  try {
    const auto [counts, as] = write(values, plan, out);
    if (!out.flush()) throw Error({.what = text::concat("Writing ", text::quote(aside), " failed")});
    std::filesystem::rename(aside, target);
    std::cout << counts.texts << " texts, " << counts.tokens << " tokens as " << as << "\n";
  } catch (...) {
    std::filesystem::remove(aside);
    throw;
  }
  return 0;
}

}  // namespace hortator::tools
