// A build without ICU has no tokenizers.
#include <hortator/error.hpp>
#include <hortator/models/tokenizer.hpp>

namespace hortator::models {

struct Tokenizer::Parts {};

Tokenizer::Tokenizer(const std::filesystem::path& /*path*/) {
  throw UsageError({.what = "This build of Hortator has no tokenizers",
                    .why = "it was configured without ICU",
                    .hint = "install ICU's headers (Debian: libicu-dev) and build again"});
}

// No tokenizer can be made, so these are never called.
Encoding Tokenizer::encode(std::string_view, bool) const { return {}; }
Encoding Tokenizer::encode(const TextInput&, bool) const { return {}; }
std::vector<Encoding> Tokenizer::encode_batch(const std::vector<TextInput>&, bool, std::size_t) const { return {}; }
std::string Tokenizer::decode(const std::vector<std::int64_t>&, bool) const { return {}; }
std::optional<std::int64_t> Tokenizer::id_of(const std::string&) const { return {}; }
std::optional<std::string> Tokenizer::token_of(std::int64_t) const { return {}; }
std::size_t Tokenizer::vocabulary_size() const { return 0; }
std::int64_t Tokenizer::largest_id() const { return 0; }
Tokenizer Tokenizer::without_limits() const { return *this; }

}  // namespace hortator::models
