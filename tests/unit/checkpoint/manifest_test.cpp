#include "checkpoint/manifest.hpp"

#include <bit>
#include <limits>

#include "checkpoint/write/save_task.hpp"
#include "core/checksum/crc.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;
using checkpoint::Manifest;

namespace {
Manifest made() {
  Manifest manifest = {.step = 12, .world_size = 3, .mesh = {{"data", 3}}, .created = "2026-11-21T00:00:00Z"};
  manifest.files = {{.name = "state-0.h5", .bytes = 10'000'000, .structure_crc32c = 7},
                    {.name = "state-1.h5", .bytes = 20'000'000, .structure_crc32c = 4'000'000'000}};
  auto& cut = manifest.datasets["a/\"b\"/\u00e4"];
  cut.spec = {.type = at::kBFloat16, .shape = {3'000'000}};
  cut.pieces = {{.file = 0, .elements = {0, 2'097'152}, .offset = 4096},
                {.file = 1, .elements = {2'097'152, 3'000'000}}};
  cut.blocks = {1, 4'294'967'295};
  manifest.datasets["empty"] = {.spec = {.type = at::kFloat, .shape = {0, 3}}};
  return manifest;
}
}  // namespace

TEST_CASE("a manifest is restored unchanged") {
  auto manifest = made();
  manifest.values.put("whole", std::numeric_limits<std::int64_t>::min());
  manifest.values.put("text", "line\nbreak");
  manifest.updates = 345;
  manifest.metadata = {{"a \"word\"", "\u00e4\n"}};
  const auto json = to_json(manifest);
  const auto back = checkpoint::parse_manifest(json);
  CHECK(to_json(back) == json);
  CHECK(back.step == 12);
  CHECK(back.updates == 345);
  CHECK(back.mesh.at("data") == 3);
  CHECK(back.metadata.at("a \"word\"") == "\u00e4\n");
  CHECK(back.files[1].structure_crc32c == 4'000'000'000);
  CHECK((back.datasets.at("a/\"b\"/\u00e4").pieces == made().datasets.at("a/\"b\"/\u00e4").pieces));
  CHECK(back.tensor_bytes() == 6'000'000);
  CHECK(back.values.get<std::int64_t>("whole") == std::numeric_limits<std::int64_t>::min());
  CHECK(checkpoint::parse_manifest(to_json(Manifest{})).datasets.empty());
}

TEST_CASE("a manifest without updates and metadata is read") {
  auto json = to_json(made());
  for (const std::string line : {"\"updates\": 0,\n", "\"metadata\": {},\n"}) {
    const auto position = json.find(line);
    REQUIRE(position != std::string::npos);
    json.erase(position, line.size());
  }
  json.erase(json.rfind(",\n\"crc32c\": "));
  const auto back =
      checkpoint::parse_manifest(text::concat(json, ",\n\"crc32c\": ", core::crc32c(json.data(), json.size()), "}\n"));
  CHECK(back.step == 12);
  CHECK(back.updates == 0);
  CHECK(back.metadata.empty());
}

TEST_CASE("a number that is not whole, or too large to be, is refused where a whole one is expected") {
  for (const auto* number : {"1.5", "218446744073709551615"}) {
    auto json = to_json(Manifest{});
    json.erase(json.rfind(",\n\"crc32c\": "));
    json.replace(json.find("\"world_size\": 0"), 15, text::concat("\"world_size\": ", number));
    const auto whole = text::concat(json, ",\n\"crc32c\": ", core::crc32c(json.data(), json.size()), "}\n");
    CHECK_THROWS_WITH(checkpoint::parse_manifest(whole), ContainsSubstring("expected a whole number, got "));
  }
}

TEST_CASE("every number and text is restored bit for bit") {
  Manifest manifest;
  const auto nan_with_payload = std::bit_cast<double>(0x7ff8000000000123ULL);
  const std::vector<double> reals = {0.0,
                                     -0.0,
                                     0.1,
                                     1.0,
                                     1e300,
                                     5e-324,
                                     -std::numeric_limits<double>::infinity(),
                                     nan_with_payload,
                                     9007199254740993.0};
  for (std::size_t i = 0; i < reals.size(); ++i) manifest.values.put("real" + std::to_string(i), reals[i]);
  const std::vector<std::string> texts = {"",    std::string("two\0parts", 9), "\xff\xfe", "\xc3\xa4", "\xed\xa0\x80",
                                          "\xc3"};
  for (std::size_t i = 0; i < texts.size(); ++i) manifest.values.put("text" + std::to_string(i), texts[i]);
  const auto back = checkpoint::parse_manifest(to_json(manifest)).values;
  for (std::size_t i = 0; i < reals.size(); ++i) {
    CHECK(std::bit_cast<std::uint64_t>(back.get<double>("real" + std::to_string(i))) ==
          std::bit_cast<std::uint64_t>(reals[i]));
  }
  for (std::size_t i = 0; i < texts.size(); ++i) CHECK(back.get<std::string>("text" + std::to_string(i)) == texts[i]);
  CHECK(core::is_utf8("\xe2\x82\xac \xf0\x9f\x9a\x80"));
  for (const auto* bytes : {"\xc0\x80", "\xe0\x80\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\x80", "\xe2\x82", "\xf8"})
    CHECK_FALSE(core::is_utf8(bytes));
}

TEST_CASE("a rank's report is complete or refused") {
  const checkpoint::RankReport report = {
      .blocks = {1, 2, 3}, .files = {{.bytes = 5, .structure_crc32c = 6, .offsets = {7, 8}}, {.bytes = 9}}};
  const auto bytes = pack(report);
  const auto back = checkpoint::unpack_report(bytes);
  REQUIRE(back);
  CHECK(back->blocks == report.blocks);
  REQUIRE(back->files.size() == 2);
  CHECK(back->files[0].offsets == report.files[0].offsets);
  CHECK(back->files[1].bytes == 9);
  CHECK(checkpoint::unpack_report(pack(checkpoint::RankReport{}))->blocks.empty());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    CHECK_FALSE(checkpoint::unpack_report(bytes.substr(0, length)).has_value());
}
