#include "formats/torch/pickle/machine.hpp"

#include <limits>

#include "support/catch.hpp"

using namespace hortator::formats;
using namespace std::string_literals;

namespace {

PickleValue parsed(const std::string& pickle) {
  return parse_pickle(
      "\x80\2" + pickle,
      [](const std::string& name) { return name == "0" ? std::optional<std::uint64_t>(24) : std::nullopt; },
      ForeignObjects::refused);
}

std::string unicode(const std::string& text) { return "X"s + static_cast<char>(text.size()) + "\0\0\0"s + text; }

/// A float tensor over a storage of `size` elements.
std::string float_tensor(const std::string& first, const std::string& shape, const std::string& strides,
                         const std::string& size = "K\6", const std::string& storage = "ctorch\nFloatStorage\n",
                         const std::string& key = "0") {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + unicode("storage") + storage + unicode(key) + unicode("cpu") + size +
         "tQ" + first + "(" + shape + "t(" + strides + "t\x89" + "}tR.";
}

}  // namespace

TEST_CASE("a tensor must lie within its storage, and the storage within the file") {
  CHECK(std::get<PickledTensor>(parsed(float_tensor("K\0"s, "K\2K\3", "K\3K\1")).content).reach() == 6);
  CHECK(std::get<PickledTensor>(parsed(float_tensor("K\5", "K\7", "K\0"s)).content).reach() == 1);
  CHECK(std::get<PickledTensor>(parsed(float_tensor("K\7", "K\0K\3"s, "K\3K\1")).content).reach() == 0);
  const auto refused = GENERATE(
      float_tensor("K\1", "K\2K\3", "K\3K\1"), float_tensor("K\0"s, "K\2K\3", "K\4K\1"), float_tensor("K\6", "", ""),
      float_tensor("J\xff\xff\xff\xff", "K\1", "K\1"), float_tensor("K\0"s, "K\1", "J\xff\xff\xff\xff"),
      float_tensor("K\0"s, "J\xff\xff\xff\xff", "K\1"), float_tensor("K\0"s, "K\1K\1", "K\1"),
      float_tensor("K\0"s, "\x8a\x08\0\0\0\0\0\0\0\x40"s, "K\0"s),  // 2^62 elements with stride 0
      float_tensor("K\0"s, "K\2K\2", "\x8a\x08\0\0\0\0\0\0\0\x40\x8a\x08\0\0\0\0\0\0\0\x40"s),
      float_tensor("K\0"s, "K\1", "K\1", "K\7"),  // 28 bytes of storage, but 24 exist
      float_tensor("K\0"s, "K\1", "K\1", "J\xff\xff\xff\xff"),
      float_tensor("K\0"s, "K\1", "K\1", "\x8a\x08\0\0\0\0\0\0\0\x40"s),
      float_tensor("K\0"s, "K\1", "K\1", "K\6", "ctorch\nFloatStorage\n", "1"),
      float_tensor("K\0"s, "K\1", "K\1", "K\6", "ctorch\nQInt8Storage\n"),
      float_tensor("K\0"s, "K\1", "K\1", "K\6", "ctorch.storage\nUntypedStorage\n"));
  CHECK_THROWS_AS(parsed(refused), PickleFault);
}

TEST_CASE("foreign classes are named wherever they appear, and nothing is called") {
  CHECK_THROWS_WITH(parsed("cos\nsystem\n" + unicode("true") + "\x85R."), ContainsSubstring("an object of os.system"));
  CHECK_THROWS_WITH(parsed("cos\nsystem\n."), ContainsSubstring("an object of os.system"));
  CHECK_THROWS_WITH(parsed("}" + unicode("run") + "cos\nsystem\ns."), ContainsSubstring("an object of os.system"));
  CHECK_THROWS_WITH(parsed("cos\nsystem\n)\x81."), ContainsSubstring("an object of os.system"));
  // Nor as an element of a known object.
  CHECK_THROWS_WITH(parsed("ctorch\nSize\ncos\nsystem\n\x85R."), ContainsSubstring("torch.Size"));
  CHECK_THROWS_WITH(parsed("ctorch\nfloat32\n."), ContainsSubstring("torch.float32"));
}

TEST_CASE("damaged pickles are refused with the offset") {
  const auto broken =
      GENERATE(""s, "K"s, "K\1"s, "."s, "K\1K\2."s, "(."s, "(K\1."s, "t."s, "\x85."s, "h\0."s, "K\1K\2a."s, "K\1(e."s,
               "}K\1s."s, "}(K\1u."s, "Xabcd"s, "X\2\0\0\0\xff\xff."s, "cos"s, "cos\nsystem"s, "K\1Q."s, "K\1R."s,
               "K\1)R."s, "K\1}b."s, "\x80\2."s, "i."s, "\xff."s, "\x8a\x02K"s, "(K\1]\x86."s,
               "ctorch._utils\n_rebuild_tensor_v2\n)R."s, "ctorch._utils\n_rebuild_tensor_v3\n)R."s,
               "ctorch._utils\n_rebuild_parameter\n)R."s, "ctorch._tensor\n_rebuild_from_type_v2\n)R."s);
  INFO(broken);
  CHECK_THROWS_AS(parsed(broken), PickleFault);
}

TEST_CASE("unbounded growth and cycles are refused before they take memory") {
  auto doubling = "]q\0"s;  // each list holds the previous one ten times: 10^39 values
  for (char level = 1; level < 40; ++level) {
    doubling += "](";
    for (int i = 0; i < 10; ++i) doubling += "h"s + static_cast<char>(level - 1);
    doubling += "eq"s + level;
  }
  // The lists stay on the stack: the last one becomes an item of a tuple with all others.
  CHECK_THROWS_WITH(parsed("(" + doubling + "t."), ContainsSubstring("far more values than it has bytes"));
  CHECK_THROWS_WITH(parsed("]q\0h\0a."s), ContainsSubstring("levels deep") || ContainsSubstring("far more values"));
  std::string deep;
  for (int i = 0; i < 500; ++i) deep += "]";
  for (int i = 1; i < 500; ++i) deep += "a";
  CHECK_THROWS_WITH(parsed(deep + "."), ContainsSubstring("levels deep"));
}

TEST_CASE("what a few bytes can repeat is limited") {
  const auto long_text = "X\0\x10\0\0"s + std::string(4096, 'k');
  CHECK_THROWS_WITH(
      parsed("(("s + unicode("storage") + "ctorch\nFloatStorage\n"s + long_text + unicode("cpu") + "K\0tQt."s),
      ContainsSubstring("name of 4096 bytes"));
  CHECK_THROWS_WITH(parsed(long_text + long_text + "\x93."s), ContainsSubstring("too long"));
  auto many = "\x80\2(cx\ny\nq\0("s + std::string(200, 'N') + "tq\1"s;
  for (int i = 0; i < 2000; ++i) many += "h\0h\1R"s;
  const auto no_storage = [](const std::string&) { return std::optional<std::uint64_t>(); };
  CHECK_THROWS_WITH(parse_pickle(many + "t.", no_storage, ForeignObjects::kept),
                    ContainsSubstring("far more arguments"));
}

TEST_CASE("whole numbers are little-endian and of any length") {
  const auto number = [](const std::string& pickle) { return std::get<std::int64_t>(parsed(pickle + ".").content); };
  CHECK(number("K\xff") == 255);
  CHECK(number("M\1\2") == 513);
  CHECK(number("J\xfe\xff\xff\xff") == -2);
  CHECK(number("\x8a\0"s) == 0);
  CHECK(number("\x8a\1\xff") == -1);
  CHECK(number("\x8a\2\xff\0"s) == 255);
  CHECK(number("\x8a\x08\0\0\0\0\0\0\0\x80"s) == std::numeric_limits<std::int64_t>::min());
  CHECK(std::get<double>(parsed("G\x3f\xf8\0\0\0\0\0\0."s).content) == 1.5);
}
