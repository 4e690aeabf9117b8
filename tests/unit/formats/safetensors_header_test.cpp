// The header of safetensors, by what the format's own library says of hundreds of damaged ones
// (safetensors_headers.json, made by tests/tools/safetensors-headers.py).
#include "formats/safetensors/header.hpp"

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
  std::string words;
  for (int i = 0; i < 8; ++i) words += static_cast<char>(bytes >> (8 * i));
  return words;
}

constexpr auto one = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

}  // namespace

TEST_CASE("damaged headers are refused in the words of the format's library, whole ones are read alike") {
  const auto cases = json::parse(std::ifstream(SAFETENSORS_HEADERS));
  int refused = 0;
  int read = 0;
  for (const auto& known : cases) {
    const auto header = from_hex(known.at("header"));
    const auto bytes = known.at("data").get<std::uint64_t>();
    const auto fault = fault_of(header, bytes);
    INFO(header);
    if (known.contains("error")) {
      // Ours may say more behind it: the tensor's name.
      CHECK(fault.substr(0, known.at("error").get<std::string>().size()) == known.at("error").get<std::string>());
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
  CHECK(length_fault("", 0) == "header too small");
  CHECK(length_fault("1234567", 7) == "header too small");
  CHECK(length_fault(length(2), 10) == "2");
  CHECK(length_fault(length(3), 10) == "invalid header length");
  CHECK(length_fault(length(100'000'000), 100'000'008) == "100000000");
  CHECK(length_fault(length(100'000'001), 200'000'000) == "header too large");
  CHECK(length_fault(length(~std::uint64_t{0}), 100) == "header too large");
}

TEST_CASE("a file that is longer or shorter than its header says is refused") {
  CHECK(fault_of(one, 8) == "");
  CHECK(fault_of(one, 7) == "incomplete metadata, file not fully covered");
  CHECK(fault_of(one, 9) == "incomplete metadata, file not fully covered");
  CHECK(fault_of(one, 0) == "incomplete metadata, file not fully covered");
}

TEST_CASE("a tensor's name goes with what is wrong with it") {
  CHECK_THAT(fault_of(R"({"w.0":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8), ContainsSubstring("`w.0`"));
  CHECK_THAT(fault_of(R"({"w.0":{"dtype":"F99","shape":[3],"data_offsets":[0,8]}})", 8), ContainsSubstring("`w.0`"));
  CHECK_THAT(fault_of(R"({"w.0":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2), ContainsSubstring("`w.0`"));
  CHECK_THAT(fault_of(R"({"w.0":{"dtype":"F64","shape":[3458764513820540928],"data_offsets":[0,8]}})", 8),
             ContainsSubstring("overflow") && ContainsSubstring("`w.0`"));
}

TEST_CASE("tensors stand in the order of their bytes, and metadata beside them") {
  const std::string header = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"__metadata__":{"format":"pt"},)"
                             R"("a":{"dtype":"I16","shape":[1],"data_offsets":[0,2]}})";
  const auto parsed = formats::parse_safetensors_header(header, 8 + header.size() + 3);
  REQUIRE(parsed.entries.size() == 2);
  CHECK(parsed.entries[0].name == "a");
  CHECK(parsed.entries[1].name == "b");
  CHECK(parsed.metadata == std::map<std::string, std::string>{{"format", "pt"}});
  CHECK(parsed.data_offset == 8 + header.size());
}

TEST_CASE("what a header has that a terminal obeys is told by its number") {
  const auto fault = fault_of(R"({"a":"b\u0000\u001b\u007f"})", 0);
  CHECK(fault.find(R"(invalid type: string "b\0\u{1b}\u{7f}")") != std::string::npos);
}
