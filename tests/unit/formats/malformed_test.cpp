#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>

#include "formats/safetensors/header.hpp"
#include "formats/torch/pickle/archive.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator::formats;

namespace {

/// Damages bytes at random, equally in each run.
class Damager {
 public:
  explicit Damager(std::vector<std::string> inserts) : inserts_(std::move(inserts)) {}

  std::string spoil(std::string bytes) {
    for (auto times = 1 + below(3); times > 0; --times) spoil_once(bytes);
    return bytes;
  }
  std::size_t below(std::size_t end) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::size_t>(state_ >> 16) % end;
  }

 private:
  void spoil_once(std::string& bytes) {
    const auto at = below(bytes.size() + 1);
    const auto length = std::min(below(8), bytes.size() - at);
    switch (below(6)) {
      case 0:
        bytes.erase(at, length);
        break;
      case 1:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 2:
        bytes.insert(at, inserts_[below(inserts_.size())]);
        break;
      case 3:
        bytes.replace(at, length, inserts_[below(inserts_.size())]);
        break;
      case 4:
        bytes.insert(at, 1, static_cast<char>(below(256)));
        break;
      default:
        if (at < bytes.size()) bytes[at] = static_cast<char>(static_cast<std::size_t>(bytes[at]) ^ (1U << below(8)));
    }
  }

  std::vector<std::string> inserts_;
  std::uint64_t state_ = 88172645463325252ULL;
};

std::string file(const std::string& name) {
  return hortator::test::content_of(std::filesystem::path(TORCH_PICKLES) / name);
}

/// The pickle of a file.
std::string pickle_in(const std::string& archive) {
  const auto read = [&](std::uint64_t at, void* to, std::size_t bytes) { std::memcpy(to, archive.data() + at, bytes); };
  const ZipRecords records({.bytes = archive.size(), .read_at = read});
  const auto* record = records.find(records.names().front());
  return archive.substr(record->offset, record->bytes);
}

struct Verdicts {
  int taken = 0;
  int refused = 0;
};

void read_damaged_headers(int count) {
  const std::vector<std::string> seeds = {
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"__metadata__":{"format":"pt"},"b\u00e9":{"dtype":"BOOL","shape":[2,2],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F16","shape":[],"data_offsets":[0,2]},"b":{"dtype":"U16","shape":[1,1],"data_offsets":[2,4]}})",
      R"({"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]},"b":{"dtype":"F64","shape":[0,3],"data_offsets":[4,4]}} )"};
  Damager spoiler({"18446744073709551615", "-1", "1e999", "\\ud83d", "\\ude00", "[", "]", "{", "}", "\"", ",", ":",
                   "null", "0", "[[[[[[[[", "\"F6_E2M3\"", "\"shape\"", "\xc3", "__metadata__"});
  Verdicts verdicts;
  for (int i = 0; i < count; ++i) {
    const auto header = spoiler.spoil(seeds[spoiler.below(seeds.size())]);
    const auto file_bytes = 8 + header.size() + 4;
    try {
      const auto parsed = parse_safetensors_header(header, file_bytes);
      ++verdicts.taken;
      for (const auto& entry : parsed.entries)
        if (entry.begin > entry.end || parsed.data_offset + entry.end > file_bytes) FAIL(header);
    } catch (const SafetensorsFault&) {
      ++verdicts.refused;
    }
  }
  CHECK(verdicts.taken > count / 1000);
  CHECK(verdicts.refused > count / 10);
}

}  // namespace

TEST_CASE("damaged safetensors headers are accepted or refused without harm") { read_damaged_headers(100'000); }

TEST_CASE("a million damaged safetensors headers are accepted or refused without harm", "[.million]") {
  read_damaged_headers(1'000'000);
}

TEST_CASE("damaged pickles are accepted or refused, and nothing else happens") {
  std::vector<std::string> seeds;
  for (const auto* name : {"nested.pt", "shapes.pt", "floats_of_8_bits.pt", "tied.pt", "counter.pt"})
    seeds.push_back(pickle_in(file(name)));
  Damager spoiler({"\xff\xff\xff\xff", "K\xff", "h", "q", "(", "t", "R", "Q", "}", "]", "u", "e", "s", ".",
                   "cos\nsystem\n", "J\xff\xff\xff\x7f", "ctorch\nSize\n", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"});
  constexpr std::uint64_t storage_bytes = 64;
  Verdicts verdicts;
  for (int i = 0; i < 100'000; ++i) {
    const auto pickle = spoiler.spoil(seeds[spoiler.below(seeds.size())]);
    try {
      parse_pickle(
          pickle, [](const std::string&) { return storage_bytes; }, ForeignObjects::kept);
      ++verdicts.taken;
    } catch (const PickleFault&) {
      ++verdicts.refused;
    }
  }
  CHECK(verdicts.taken > 1'000);
  CHECK(verdicts.refused > 10'000);
}

TEST_CASE("damaged archives are accepted or refused, and nothing outside of them is read") {
  const auto whole = file("tied.pt");
  Damager spoiler(
      {"\xff\xff\xff\xff\xff\xff\xff\xff", "PK\x05\x06", "PK\x06\x06", "PK\x06\x07", "PK\x01\x02", "/", "\1"});
  Verdicts verdicts;
  for (int i = 0; i < 50'000; ++i) {
    const auto archive = spoiler.spoil(whole);
    const auto read = [&](std::uint64_t at, void* to, std::size_t bytes) {
      if (at > archive.size() || bytes > archive.size() - at) throw std::out_of_range("read outside of the archive");
      std::memcpy(to, archive.data() + at, bytes);
    };
    try {
      const PickleArchive opened({.bytes = archive.size(), .read_at = read});
      ++verdicts.taken;
    } catch (const ZipFault&) {
      ++verdicts.refused;
    } catch (const PickleFault&) {
      ++verdicts.refused;
    }
  }
  CHECK(verdicts.taken > 1'000);
  CHECK(verdicts.refused > 10'000);
}
