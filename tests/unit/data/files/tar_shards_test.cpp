// Samples in tar archives.
#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"
#include "tar_bytes.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

std::string error_of(const std::string& bytes) {
  try {
    const TarShards shards({write("bad.tar", bytes)});
    shards.get(0);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the files of a sample follow each other in a shard") {
  const TarShards shards(
      {write("a.tar", tar({{"x/1.txt", "one"}, {"x/1.seg.PNG", "image"}, {"x/2.txt", "two"}})),
       write("b.tar", tar({{"x/._2.txt", "hidden"}, {"x/2.txt", "again"}, {"x/._a", ""}, {"x/2.cls", "5"}}))});
  REQUIRE(shards.size() == 3);
  CHECK(shards.get(0).key == "x/1");
  CHECK(shards.get(0).files == std::map<std::string, std::string>{{"txt", "one"}, {"seg.png", "image"}});
  CHECK(shards.get(1).files == std::map<std::string, std::string>{{"txt", "two"}});
  CHECK(shards.get(2).files == std::map<std::string, std::string>{{"txt", "again"}, {"cls", "5"}});
  CHECK_THROWS_AS(shards.get(3), UsageError);
  const auto copy = shards;
  CHECK(copy.get(2).key == "x/2");
}

TEST_CASE("a loader shuffles the samples of all shards") {
  Members many;
  for (int i = 0; i < 20; ++i) many.emplace_back("s" + std::to_string(i) + ".txt", std::to_string(i));
  const auto join = [](const std::vector<TarSample>& samples) {
    std::vector<std::int64_t> numbers;
    for (const auto& sample : samples) numbers.push_back(std::stoll(sample.files.at("txt")));
    return at::tensor(numbers, at::kLong);
  };
  auto loader = data_loader(TarShards({write("a.tar", tar(many))}), {.batch_size = 7, .shuffle = true}, join);
  std::vector<at::Tensor> read;
  for (auto& batch : loader) read.push_back(batch);
  const auto all = at::cat(read);
  CHECK_FALSE(at::equal(all, at::arange(20)));
  CHECK(at::equal(std::get<0>(all.sort()), at::arange(20)));
}

TEST_CASE("shards that are not valid are refused by name") {
  CHECK_THAT(error_of("not an archive"), ContainsSubstring("\"bad.tar\" is not a valid tar shard"));
  CHECK_THAT(error_of("\x1f\x8b" + tar({{"a.txt", "x"}})), ContainsSubstring("gunzip"));
  CHECK_THAT(error_of(tar({})), ContainsSubstring("has no samples"));
  CHECK_THAT(error_of(tar({{"README", "x"}})), ContainsSubstring("has no extension"));
  CHECK_THAT(error_of(tar({{"a.txt", "x"}, {"a.TXT", "y"}})), ContainsSubstring("two files with the extension 'txt'"));
  CHECK_THROWS_AS(TarShards({"nowhere.tar"}), Error);
  CHECK_THROWS_AS(TarShards({}), UsageError);
  const TarShards shards({write("bad.tar", tar({{"a.txt", "x"}}))});
  write("bad.tar", tar({{"a.txt", "x"}, {"b.txt", "y"}}));
  CHECK_THROWS_WITH(shards.get(0), ContainsSubstring("bad.tar"));
}

TEST_CASE("a pattern of shards has one range of numbers") {
  CHECK(shard_paths("a.tar") == std::vector<std::filesystem::path>{"a.tar"});
  CHECK(shard_paths("a{008..010}.tar") == std::vector<std::filesystem::path>{"a008.tar", "a009.tar", "a010.tar"});
  CHECK(shard_paths("{9..10}") == std::vector<std::filesystem::path>{"9", "10"});
  for (const auto* pattern : {"a{1..}.tar", "a{2..1}", "a{1,2}", "a{1..2", "a{x..y}", "{1..2}{1..2}", "{1..9999999}"})
    CHECK_THROWS_AS(shard_paths(pattern), UsageError);
}
