#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "data/files/npy_header.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

const std::vector<float> six = {0, 1, 2, 3, 4, 5};

std::string npy(const std::string& description, const std::string& data, char version = 1) {
  auto text = description;
  text += '\n';
  std::string head = std::string("\x93NUMPY") + version + '\0';
  head += static_cast<char>(text.size() & 255);
  head += static_cast<char>(text.size() >> 8);
  if (version > 1) head += std::string(2, '\0');
  return head + text + data;
}

std::string described(const std::string& type, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }   ";
}

std::string header_fault(const std::string& text) {
  try {
    data::parse_npy_header(text);
    return "none";
  } catch (const data::NpyFault& fault) {
    return fault.what();
  }
}

}  // namespace

TEST_CASE("arrays of NumPy are read in rows") {
  const ArrayRows rows(write("a.npy", npy(described("<f4", "(3, 2)"), raw(six))));
  CHECK(rows.size() == 3);
  CHECK(at::equal(rows.get(1), at::tensor({2.0F, 3.0F})));
  CHECK(at::equal(rows.get_batch(Samples{2, 0, 1}), at::tensor({4.0F, 5.0F, 0.0F, 1.0F, 2.0F, 3.0F}).view({3, 2})));
  CHECK(at::equal(ArrayRows(write("v.npy", npy(described("<i2", "(3,)"), raw<std::int16_t>({7, 8, 9}), 2))).get(2),
                  at::scalar_tensor(9, at::kShort)));
  CHECK(ArrayRows(write("none.npy", npy(described("<f4", "(0, 5)"), ""))).size() == 0);
}

TEST_CASE("the header's text is taken as Python writes it, and nothing else") {
  using formats::TensorSpec;
  const auto parse = [](const std::string& text) { return data::parse_npy_header(text); };
  CHECK(parse(described("<f8", "(3, 4)")) == TensorSpec{.type = at::kDouble, .shape = {3, 4}});
  CHECK(parse(described("|b1", "()")) == TensorSpec{.type = at::kBool, .shape = {}});
  CHECK(parse(described("<c16", "(2L,)")) == TensorSpec{.type = at::kComplexDouble, .shape = {2}});
  CHECK(parse(described("<u2", "(5,)", "True")) == TensorSpec{.type = at::kUInt16, .shape = {5}});
  CHECK(parse(R"({"shape":(1,2,3),"fortran_order":False,"descr":"<f2"})") ==
        TensorSpec{.type = at::kHalf, .shape = {1, 2, 3}});
  CHECK_THAT(header_fault(described(">f4", "(3,)")), ContainsSubstring("big-endian"));
  CHECK_THAT(header_fault(described("<U5", "(3,)")), ContainsSubstring("'<U5'"));
  CHECK_THAT(header_fault(described("|O", "(3,)")), ContainsSubstring("no tensor has"));
  CHECK_THAT(header_fault(described("<f4", "(3, 2)", "True")), ContainsSubstring("Fortran"));
  CHECK_THAT(header_fault("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,), }"),
             ContainsSubstring("records"));
  for (const std::string damaged : {"", "{", "{}", "{'descr': '<f4', 'fortran_order': False}",
                                    "{'descr': '<f4', 'fortran_order': False, 'shape': (3,",
                                    "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3,)}",
                                    "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
                                    "{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}", "{'descr': '<f4, }",
                                    "{'more': 1}", "{'descr': '', 'fortran_order': False, 'shape': (3,)}",
                                    "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"}) {
    INFO(damaged);
    CHECK(header_fault(damaged) != "none");
  }
}

TEST_CASE("a truncated or invalid .npy file is refused by name") {
  const auto whole = npy(described("<f4", "(3, 2)"), raw(six));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    CHECK_THROWS_WITH(ArrayRows(write("cut.npy", whole.substr(0, size))), ContainsSubstring("cut.npy"));
  }
  CHECK_THROWS_WITH(ArrayRows(write("more.npy", whole + "x")), ContainsSubstring("does not fill"));
  CHECK_THROWS_WITH(ArrayRows(write("number.npy", npy(described("<f4", "()"), raw<float>({1})))),
                    ContainsSubstring("no rows"));
  CHECK_THROWS_WITH(ArrayRows(write("huge.npy", npy(described("<f4", "(9223372036854775807, 9)"), ""))),
                    ContainsSubstring("does not fill"));
}

TEST_CASE("bare numbers are read by what they are said to be") {
  const auto path = write("raw.bin", "head" + raw(six));
  const ArrayRows rows(path, {.type = at::kFloat, .row_shape = {3}, .offset = 4});
  CHECK(rows.size() == 2);
  CHECK(at::equal(rows.get(1), at::tensor({3.0F, 4.0F, 5.0F})));
  CHECK(ArrayRows(path, {.type = at::kByte}).size() == 28);
  CHECK_THROWS_WITH(ArrayRows(path, {.type = at::kFloat, .row_shape = {4}, .offset = 4}),
                    ContainsSubstring("raw.bin") && ContainsSubstring("28 bytes"));
  CHECK_THROWS_WITH(ArrayRows(path, {.offset = 29}), ContainsSubstring("28 bytes"));
  CHECK_THROWS_WITH(ArrayRows(path, {.row_shape = {0}}), ContainsSubstring("not possible in a file"));
  CHECK_THROWS_WITH(ArrayRows(path, {.offset = -4}), ContainsSubstring("not possible in a file"));
  CHECK_THROWS_WITH(rows.get_batch(Samples{0, 2}), ContainsSubstring("no sample 2"));
}

TEST_CASE("an array that is cut while it is in use is an error, not a signal") {
  const ArrayRows rows(write("shrinking.bin", raw(std::vector<float>(10000))), {});
  std::filesystem::resize_file("shrinking.bin", 8);
  CHECK_THROWS_WITH(rows.get(9999), ContainsSubstring("shrinking.bin") && ContainsSubstring("was changed"));
  CHECK_THROWS_WITH(rows.get(0), ContainsSubstring("was changed"));
}

TEST_CASE("two arrays are examples together") {
  const ArrayRows x(write("x.npy", npy(described("<f4", "(3, 2)"), raw(six))));
  const ArrayRows y(write("y.npy", npy(described("<i8", "(3,)"), raw<std::int64_t>({7, 8, 9}))));
  auto loader = data_loader(examples(x, y), {.batch_size = 2});
  std::vector<std::int64_t> targets;
  for (auto& batch : loader) {
    CHECK(batch.data.size(1) == 2);
    for (std::int64_t i = 0; i < batch.target.numel(); ++i) targets.push_back(batch.target[i].item<std::int64_t>());
  }
  CHECK(targets == std::vector<std::int64_t>{7, 8, 9});
  CHECK(examples(x, y).get(2).target.item<int>() == 9);
  const ArrayRows two(write("two.npy", npy(described("<i8", "(2,)"), raw<std::int64_t>({7, 8}))));
  CHECK_THROWS_WITH(examples(x, two), ContainsSubstring("3 samples") && ContainsSubstring("2 targets"));
}
