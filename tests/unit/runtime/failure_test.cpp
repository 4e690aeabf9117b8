#include "runtime/ending/failure.hpp"

#include <ATen/ATen.h>

#include <hortator/error.hpp>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"

using namespace hortator;
using runtime::Failure;

namespace {

template <typename Thrown>
Failure described(const Thrown& thrown) {
  return runtime::describe(std::make_exception_ptr(thrown));
}

const runtime::Run run = {.id = "today-1", .folder = "runs/x", .rank = 3, .world_size = 4, .host = "n1"};

}  // namespace

TEST_CASE("any thrown object is described") {
  CHECK(described(std::runtime_error("no space")).problem == "no space");
  CHECK_FALSE(described(std::runtime_error("no space")).rank.has_value());
  CHECK(described(42).problem == "An exception of type int was thrown");
  CHECK(described(std::string("text")).problem.find("basic_string") != std::string::npos);

  const auto error = described(UsageError({.what = "no file", .why = "it holds all", .hint = "make one"}).on_rank(2));
  CHECK(error.problem == "no file (it holds all); make one");
  CHECK(error.rank == 2);
  CHECK(error.exit_code == 2);
  CHECK(described(std::runtime_error("no space")).exit_code == 1);
  CHECK_THAT(error.where, ContainsSubstring("failure_test.cpp:"));
}

TEST_CASE("LibTorch's errors come without their backtraces") {
  Failure failure;
  try {
    at::zeros({2}).view({3});
  } catch (...) {
    failure = runtime::describe(std::current_exception());
  }
  CHECK(failure.problem == "shape '[3]' is invalid for input of size 2");
}

TEST_CASE("the failure line is one line for any text") {
  CHECK(runtime::failure_line(run, {.problem = "no space"}) == "hortator: rank 3 (n1): no space");
  CHECK(runtime::failure_line(run, {.problem = "\n a\r\n\n  b \n"}) == "hortator: rank 3 (n1): a b");
  CHECK(runtime::failure_line(run, {.problem = "no space", .rank = 3}) == "hortator: rank 3 (n1): no space");
  CHECK(runtime::failure_line(run, {.problem = "no space", .rank = 1}) == "hortator: rank 3 (n1): on rank 1: no space");
  CHECK(runtime::failure_line(run, {}) == "hortator: rank 3 (n1): ");
}

TEST_CASE("the record has all facts, also for text that is not valid UTF-8") {
  const auto record =
      nlohmann::json::parse(runtime::failure_record(run, {.problem = "a\nb \"c\" \xff", .where = "x.cpp:7"}));
  CHECK(record["run_id"] == "today-1");
  CHECK(record["rank"] == 3);
  CHECK(record["host"] == "n1");
  CHECK(record["exit_code"] == 1);
  CHECK(record["pid"].is_number());
  CHECK_THAT(record["problem"].get<std::string>(), ContainsSubstring("a\nb \"c\" "));
  CHECK(record["where"] == "x.cpp:7");
  CHECK(record["time"].get<std::string>().size() == std::string("2026-01-02T03:04:05Z").size());
  CHECK(record["hortator"].is_string());
  CHECK(nlohmann::json::parse(runtime::failure_record(run, {}))["where"].is_null());
}
