// Headers of safetensors files. safetensors_headers.json holds hundreds of them, most of them damaged, with what the
// safetensors library makes of each; tests/tools/safetensors-headers.py writes it.
#include "formats/safetensors/header.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;
using nlohmann::json;

namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string fault_of(const std::string& header, std::uint64_t data) {
  try {
    formats::parse_safetensors_header(header, 8 + header.size() + data);
    return "";
  } catch (const formats::SafetensorsFault& fault) {
    return fault.what();
  }
}

std::string length_fault(const std::string& beginning, std::uint64_t file_bytes) {
  try {
    const auto* first = reinterpret_cast<const std::byte*>(beginning.data());
    return std::to_string(formats::safetensors_header_bytes({first, beginning.size()}, file_bytes));
  } catch (const formats::SafetensorsFault& fault) {
    return fault.what();
  }
}

std::string length(std::uint64_t bytes) {
  std::string stored;
  for (int i = 0; i < 8; ++i) stored += static_cast<char>(bytes >> (8 * i));
  return stored;
}

constexpr auto one = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

struct NamedFault {
  std::string_view library;  ///< in the message of the safetensors library
  std::string_view ours;     ///< must be in ours
};

// The first row that fits counts. What is left is not valid JSON.
constexpr auto named_faults = std::to_array<NamedFault>({
    {"incomplete metadata", "follow the header"},
    {"invalid offset for tensor", "invalid offsets of tensor"},
    {"invalid shape, data type, or offset", "its offsets span"},
    {"overflow computing buffer size", "beyond 64 bits"},
    {"slicing for subbytes", "whole byte"},
    {"missing field", "is missing"},
    {"duplicate field", "appears twice"},
    {"unknown variant", "unknown dtype"},
    {"recursion limit exceeded", "more than 127 nested values"},
    {"invalid type", "expected"},
    {"invalid value", "expected"},
    {"invalid length", "expected"},
});

// The safetensors library may report a wrong type in front of an error of syntax; ours parses the whole text first.
std::string expected_in_ours(const std::string& header, std::string_view library_fault) {
  const std::string syntax = "invalid JSON in the header: ";
  if (!json::accept(header)) return syntax;
  for (const auto& [library, ours] : named_faults) {
    if (library_fault.find(library) != std::string_view::npos) return std::string(ours);
  }
  return syntax;
}

bool is_printable(std::string_view message) {
  return std::ranges::all_of(message, [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
}

}  // namespace

TEST_CASE("headers are accepted and refused as by the safetensors library, with messages that name the fault") {
  const auto cases = json::parse(std::ifstream(SAFETENSORS_HEADERS));
  int refused = 0;
  int read = 0;
  for (const auto& known : cases) {
    const auto header = from_hex(known.at("header"));
    const auto bytes = known.at("data").get<std::uint64_t>();
    const auto fault = fault_of(header, bytes);
    INFO(header);
    if (known.contains("error")) {
      const auto library_fault = known.at("error").get<std::string>();
      INFO(library_fault);
      CHECK_THAT(fault, ContainsSubstring(expected_in_ours(header, library_fault)));
      CHECK(is_printable(fault));
      ++refused;
      continue;
    }
    CHECK(fault == "");
    if (!fault.empty()) continue;
    const auto parsed = formats::parse_safetensors_header(header, 8 + header.size() + bytes);
    auto found = json::object();
    for (const auto& entry : parsed.entries)
      found[entry.name] = {entry.type->name, entry.shape, entry.end - entry.begin};
    CHECK(found == known.at("tensors"));
    ++read;
  }
  CHECK(refused > 400);
  CHECK(read > 40);
}

TEST_CASE("the first eight bytes bound the header") {
  CHECK(length_fault("", 0) == "it has 0 bytes, expected at least 8");
  CHECK(length_fault("1234567", 7) == "it has 7 bytes, expected at least 8");
  CHECK(length_fault(length(2), 10) == "2");
  CHECK(length_fault(length(3), 10) == "the header's length is 3 bytes, but only 2 bytes follow");
  CHECK(length_fault(length(100'000'000), 100'000'008) == "100000000");
  constexpr auto too_large = "bytes, expected at most 100000000";
  CHECK_THAT(length_fault(length(100'000'001), 200'000'000), ContainsSubstring(too_large));
  CHECK_THAT(length_fault(length(~std::uint64_t{0}), 100), ContainsSubstring(too_large));
}

TEST_CASE("a file that is longer or shorter than its header requires is refused") {
  CHECK(fault_of(one, 8) == "");
  CHECK(fault_of(one, 7) == "the tensors have 8 bytes, but 7 bytes follow the header");
  CHECK(fault_of(one, 9) == "the tensors have 8 bytes, but 9 bytes follow the header");
  CHECK(fault_of(one, 0) == "the tensors have 8 bytes, but 0 bytes follow the header");
}

TEST_CASE("messages name the tensor at fault") {
  const auto fault_with = [](const std::string& fields) { return fault_of(R"({"w.0":{)" + fields + "}}", 8); };
  const auto names_tensor = ContainsSubstring(R"(tensor "w.0")");
  CHECK_THAT(fault_with(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), names_tensor);
  CHECK_THAT(fault_with(R"("dtype":"F99","shape":[3],"data_offsets":[0,8])"), names_tensor);
  CHECK_THAT(fault_with(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"), names_tensor);
  CHECK_THAT(fault_with(R"("dtype":"F64","shape":[3458764513820540928],"data_offsets":[0,8])"),
             ContainsSubstring("beyond 64 bits") && names_tensor);
  CHECK_THAT(fault_with(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"),
             ContainsSubstring("field 'shape': expected a whole number from 0, got 2.0") && names_tensor);
}

TEST_CASE("tensors are in the order of their bytes, and metadata is kept") {
  const std::string header = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"__metadata__":{"format":"pt"},)"
                             R"("a":{"dtype":"I16","shape":[1],"data_offsets":[0,2]}})";
  const auto parsed = formats::parse_safetensors_header(header, 8 + header.size() + 3);
  REQUIRE(parsed.entries.size() == 2);
  CHECK(parsed.entries[0].name == "a");
  CHECK(parsed.entries[1].name == "b");
  CHECK(parsed.metadata == std::map<std::string, std::string>{{"format", "pt"}});
  CHECK(parsed.data_offset == 8 + header.size());
}

TEST_CASE("whole numbers of 64 bits are exact") {
  CHECK_THAT(fault_of(R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8),
             ContainsSubstring("beyond 64 bits"));
  CHECK_THAT(fault_of(R"({"a":{"dtype":"U8","shape":[9007199254740993],"data_offsets":[0,8]}})", 8),
             ContainsSubstring("has 9007199254740993 bytes"));
  CHECK_THAT(fault_of(R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,8]}})", 8),
             ContainsSubstring("expected a whole number from 0"));
}

TEST_CASE("what the JSON parser would accept or skip is refused") {
  CHECK_THAT(fault_of("\xef\xbb\xbf{}", 0), ContainsSubstring("byte order mark"));
  CHECK_THAT(fault_of(std::string("{}\0", 3), 0), ContainsSubstring("zero byte at byte 2"));
  CHECK_THAT(fault_of(std::string("{}\0garbage", 10), 0), ContainsSubstring("zero byte at byte 2"));
  CHECK_THAT(fault_of(R"({"__metadata__":{"\u0000":"\ud83d"}})", 0), ContainsSubstring("line 1"));
}

TEST_CASE("messages escape what a terminal would obey") {
  const auto fault = fault_of(R"({"a":"b\u0000\u001b\u007f"})", 0);
  CHECK_THAT(fault, ContainsSubstring(R"(got the string "b\u0000\u001b\u007f")"));
  CHECK(is_printable(fault_of("{\"\x7f\x1b[2J\":1}", 0)));
  CHECK(is_printable(fault_of("{\"a\x80\x1b\":1}", 0)));
}
