// Two recorded steps: which calls are the same, and how tensors differ.
#include <cmath>
#include <fstream>
#include <hortator/error.hpp>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "tools/compare/comparison_view.hpp"
#include "tools/compare/run_comparison.hpp"

using namespace hortator;
using namespace hortator::tools;
using observe::OperatorRecord;
using observe::StepRecord;
using observe::TensorRecord;

namespace {

constexpr double units = 64;

TensorRecord tensor(std::vector<std::int64_t> sizes, std::uint64_t hash, double sum) {
  return {.type = "Float", .sizes = std::move(sizes), .bits = hash, .elements = hash, .sum = sum, .norm = sum};
}

OperatorRecord call(std::string name, std::string near, const TensorRecord& result) {
  return {.name = std::move(name), .path = near, .near = near, .results = {result}};
}

RunRecord run_of(std::vector<std::vector<OperatorRecord>> ranks) {
  RunRecord run;
  for (auto& operators : ranks)
    run.push_back({.step = 1,
                   .rank = static_cast<int>(run.size()),
                   .ranks = static_cast<int>(ranks.size()),
                   .operators = std::move(operators)});
  return run;
}

}  // namespace

TEST_CASE("tensors of one rank are equal, in another order, within rounding or beyond it") {
  const auto a = tensor({4}, 7, 100);
  auto b = a;
  CHECK(compare_same(a, b, units) == TensorVerdict::equal);
  b.bits = 8;
  CHECK(compare_same(a, b, units) == TensorVerdict::order);
  b.elements = 8;
  CHECK(compare_same(a, b, units) == TensorVerdict::bits);
  b.sum = b.norm = 100 * (1 + 63 * std::ldexp(1.0, -24));
  CHECK(compare_same(a, b, units) == TensorVerdict::bits);
  b.sum = b.norm = 100 * (1 + 65 * std::ldexp(1.0, -24));
  CHECK(compare_same(a, b, units) == TensorVerdict::more);
  b.norm = NAN;
  CHECK(compare_same(a, b, units) == TensorVerdict::more);
}

TEST_CASE("whole numbers, and values without sums, are not within rounding") {
  auto a = tensor({4}, 7, 100), b = tensor({4}, 8, 100);
  CHECK(compare_same(a, b, units) == TensorVerdict::bits);
  a.type = b.type = "Long";
  CHECK(compare_same(a, b, units) == TensorVerdict::more);
  for (const auto* type : {"Float", "ComplexFloat", "Float8_e5m2"}) {  // an element is not finite, or the type has none
    a.type = b.type = type;
    a.sum = a.norm = b.sum = b.norm = NAN;
    CHECK(compare_same(a, b, units) == TensorVerdict::more);
    b = a;
    CHECK(compare_same(a, b, units) == TensorVerdict::equal);
    b.bits = b.elements = 8;
  }
}

TEST_CASE("runs without an operator in common have not been compared") {
  const auto a = run_of({{call("aten::mm", "fc", tensor({2}, 1, 1))}});
  const auto b = run_of({{call("aten::mm", "head", tensor({2}, 1, 1))}});
  const auto comparison = compare(a, b, units);
  const auto view = comparison_view({.name_a = "a", .name_b = "b", .a = a, .b = b, .comparison = comparison}, 0);
  CHECK_THAT(view, ContainsSubstring("no operator is in both") && !ContainsSubstring("no difference"));
}

TEST_CASE("a whole tensor is compared with its parts, with copies and with terms of its sum") {
  const auto whole = tensor({4, 6}, 30, 60);
  const auto left = tensor({4, 3}, 10, 20);
  const auto right = tensor({4, 3}, 20, 40);
  CHECK(compare_parts({&whole}, {&left, &right}, units) == TensorVerdict::equal);
  CHECK(compare_parts({&left, &right}, {&whole}, units) == TensorVerdict::equal);
  CHECK(compare_parts({&whole}, {&whole, &whole}, units) == TensorVerdict::equal);
  CHECK(compare_parts({&whole, &whole}, {&left, &right, &left, &right}, units) == TensorVerdict::equal);
  const auto other = tensor({4, 3}, 21, 40);
  CHECK(compare_parts({&whole}, {&left, &other}, units) == TensorVerdict::bits);
  const auto far = tensor({4, 3}, 21, 41);
  CHECK(compare_parts({&whole}, {&left, &far}, units) == TensorVerdict::more);
  const auto term = tensor({4, 6}, 11, 20);
  const auto second_term = tensor({4, 6}, 12, 40);
  CHECK(compare_parts({&whole}, {&term, &second_term}, units) == TensorVerdict::parts_of_sum);
  const auto maximum = tensor({}, 5, 5);
  const auto of_part = tensor({}, 6, 6);
  CHECK(compare_parts({&maximum}, {&maximum, &of_part}, units) == TensorVerdict::unrelated);
  CHECK(compare_parts({&whole}, {&maximum, &maximum}, units) == TensorVerdict::unrelated);
}

TEST_CASE("calls are aligned by module and number, whatever one run has in addition") {
  const auto x = tensor({2}, 1, 1);
  const auto y = tensor({2}, 2, 1);
  const auto a = run_of({{call("aten::mm", "fc1", x), call("aten::relu", "fc1", x), call("aten::mm", "fc2", x)}});
  const auto b = run_of({{call("aten::copy_", "fc1", y), call("aten::mm", "fc1", x), call("aten::relu", "fc1", x),
                          call("aten::relu", "fc1", y), call("aten::mm", "fc2", y)}});
  const auto comparison = compare(a, b, units);
  CHECK(comparison.alignment.both.size() == 3);
  CHECK(comparison.alignment.only_a.empty());
  CHECK(comparison.alignment.only_b.size() == 2);
  REQUIRE(comparison.differences.size() == 1);
  CHECK(comparison.differences[0].call.text() == "aten::mm, call 1 in fc2");
  const auto view = comparison_view({.name_a = "a", .name_b = "b", .a = a, .b = b, .comparison = comparison}, 0);
  CHECK_THAT(view, ContainsSubstring("only in B: 2 operators, first aten::copy_, call 1 in fc1"));
  CHECK_THAT(view, ContainsSubstring("first difference:\n  aten::mm, call 1 in fc2\n  bits differ within rounding, on "
                                     "rank 0"));
  CHECK_THAT(view, ContainsSubstring("no operator differs by more than rounding"));
}

TEST_CASE("calls of one module are aligned by their sizes first, since backward may order them in another way") {
  const auto small = tensor({2, 3}, 1, 1);
  const auto large = tensor({8, 3}, 2, 2);
  const auto half = tensor({4, 3}, 3, 1);
  const auto a = run_of({{call("aten::mm", "fc", small), call("aten::mm", "fc", large)}});
  const auto b = run_of({{call("aten::mm", "fc", large), call("aten::mm", "fc", small)}});
  CHECK(compare(a, b, units).differences.empty());
  const auto c = run_of({{call("aten::mm", "fc", half), call("aten::mm", "fc", small)},
                         {call("aten::mm", "fc", half), call("aten::mm", "fc", small)}});
  const auto halves = compare(a, c, units);
  CHECK(halves.alignment.both.size() == 2);
  REQUIRE(halves.differences.size() == 1);  // the hashes of the halves do not add up
  CHECK(halves.differences[0].call.number == 2);
  CHECK(halves.differences[0].verdict == TensorVerdict::bits);
}

TEST_CASE("ranks that differ are named") {
  std::vector<std::vector<OperatorRecord>> ranks(8, {call("aten::mm", "fc", tensor({2}, 1, 1))});
  const auto a = run_of(ranks);
  ranks[3] = ranks[7] = {call("aten::mm", "fc", tensor({2}, 1, 1))};
  ranks[3][0].results[0].bits = ranks[7][0].results[0].bits = 9;
  ranks[3][0].results[0].elements = ranks[7][0].results[0].elements = 9;
  const auto b = run_of(ranks);
  const auto comparison = compare(a, b, units);
  const auto view = comparison_view({.name_a = "a", .name_b = "b", .a = a, .b = b, .comparison = comparison}, 1);
  CHECK_THAT(view, ContainsSubstring("only on ranks 3, 7\n"));
  CHECK_THAT(view, ContainsSubstring("its inputs are equal: this operator computes something else"));
}

TEST_CASE("parts of a batch are compared, whichever ranks compute them") {
  auto first = call("aten::mm", "fc", tensor({2}, 1, 1));
  auto second = call("aten::mm", "fc", tensor({2}, 2, 3));
  first.part = 0;
  second.part = 1;
  CHECK(compare(run_of({{first, second}}), run_of({{first}, {second}}), units).differences.empty());
  auto other = second;
  other.results[0] = tensor({2}, 5, 9);
  const auto comparison = compare(run_of({{first, second}}), run_of({{first}, {other}}), units);
  REQUIRE(comparison.differences.size() == 1);
  CHECK(comparison.differences[0].call.text() == "aten::mm, call 1 in fc, part 1 of the batch");
}

TEST_CASE("records survive the file, and damaged ones are refused") {
  const test::OwnFolder folder("compare-runs");
  std::filesystem::create_directories(folder.path);
  auto record = call("aten::mm", "fc", tensor({2, 3}, 0xfedcba9876543210, 0.1));
  record.inputs = {{.type = "Half", .sizes = {}, .bits = 3}};
  record.results.push_back({.type = "Long", .sizes = {0}, .bits = 1});
  const StepRecord step{.step = 4, .rank = 0, .ranks = 1, .operators = {record}};
  const auto file = folder.path / observe::record_file(0);
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  write(to_text(step));
  const auto read = read_run_record(folder.path);
  CHECK(to_text(read.at(0)) == to_text(step));
  CHECK(compare(read, read, units).differences.empty());

  write(to_text(step).substr(0, to_text(step).size() - 10));
  CHECK_THROWS_WITH(read_run_record(folder.path), ContainsSubstring("rank-00000.jsonl, line 3"));
  write("{\"hortator_operators\": 2}\n");
  CHECK_THROWS_WITH(read_run_record(folder.path), ContainsSubstring("another version"));
  write("step,loss\n");
  CHECK_THROWS_WITH(read_run_record(folder.path), ContainsSubstring("not a record of operators"));
  write(to_text(StepRecord{.step = 4, .rank = 0, .ranks = 2, .operators = {}}));
  CHECK_THROWS_WITH(read_run_record(folder.path), ContainsSubstring("the run had 2 ranks"));
  const auto replaced = [&](const std::string& old, const std::string& by) {
    auto text = to_text(step);
    text.replace(text.find(old), old.size(), by);
    return text;
  };
  for (const auto* hash : {"-000000000000003", "3", "00000000000000zz", "0x00000000000003", "00000000000000003"}) {
    INFO(hash);
    write(replaced("0000000000000003", hash));
    CHECK_THROWS_WITH(read_run_record(folder.path), ContainsSubstring("line 2") && ContainsSubstring("16 hexadecimal"));
  }
  write(replaced("[2,3]", "[2,-3]"));
  CHECK_THROWS_WITH(read_run_record(folder.path), ContainsSubstring("a size is negative"));
  write(to_text(step) + to_text(step).substr(to_text(step).find('\n') + 1, to_text(step).rfind("{\"operators\"")));
  CHECK_THROWS_WITH(read_run_record(folder.path), ContainsSubstring("its end is missing"));
  for (const auto& other : {StepRecord{.step = 4, .rank = 2, .ranks = 2}, StepRecord{.step = 5, .rank = 1, .ranks = 2},
                            StepRecord{.step = 4, .rank = 1, .ranks = 3}}) {
    write(to_text(StepRecord{.step = 4, .rank = 0, .ranks = 2, .operators = {}}));
    std::ofstream(folder.path / observe::record_file(1)) << to_text(other);
    CHECK_THROWS_WITH(read_run_record(folder.path),
                      ContainsSubstring("rank-00001.jsonl") && ContainsSubstring("expected step 4 on rank 1 of 2"));
  }
  CHECK_THROWS_WITH(read_run_record(folder.path / "none"), ContainsSubstring("has no record of a step"));
}
