// Checkpoints of DeepSpeed's ZeRO: what DeepSpeed wrote on two ranks is put together bit for bit.
// tests/tools/deepspeed-folders.py makes them, and beside each folder what DeepSpeed itself gathers from memory.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "formats/file/file_error.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "weights/deepspeed/flat_plan.hpp"
#include "weights/deepspeed/zero_states.hpp"
#include "weights/weight_source.hpp"

using namespace hortator;
using Catch::Matchers::ContainsSubstring;
using weights::cut_array;
using weights::cut_tensors;
using weights::FlatLengths;
using weights::FlatSlices;
namespace fs = std::filesystem;

namespace {

const fs::path zero_cases = DEEPSPEED_CASES;

fs::path copy_of_zero_case(const std::string& name) {
  const auto copy = fs::absolute("copy_of_deepspeed");
  fs::remove_all(copy);
  fs::copy(zero_cases / name, copy, fs::copy_options::recursive);
  return copy;
}

using Sizes = std::vector<std::int64_t>;

/// Fills arrays by the slices with the numbers of the elements, and returns whether each tensor is found again.
bool hold_every_element(const FlatSlices& all, const Sizes& sizes, const FlatLengths& lengths) {
  std::vector<std::vector<Sizes>> arrays;
  for (const auto& rank : lengths) {
    arrays.emplace_back();
    for (const auto length : rank) arrays.back().emplace_back(static_cast<std::size_t>(length), -1);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t next = 0;
    for (const auto& slice : all[i]) {
      if (slice.elements.begin != next || slice.elements.size() <= 0) return false;
      next = slice.elements.end;
      for (std::int64_t k = 0; k < slice.elements.size(); ++k) {
        auto& element = arrays[slice.rank][slice.array].at(static_cast<std::size_t>(slice.first + k));
        if (element != -1) return false;  // of another tensor
        element = 1;
      }
    }
    if (next != sizes[i]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("an array of several tensors is cut for any number of ranks, with or without padding") {
  for (std::int64_t ranks = 1; ranks <= 5; ++ranks) {
    for (std::int64_t first = 0; first < 9; ++first) {
      for (std::int64_t second = 0; second < 9; ++second) {
        for (const auto& gaps : {Sizes(), Sizes{0, 0}, Sizes{2, 1}}) {
          const Sizes sizes = {first, second};
          const auto used = first + second + (gaps.empty() ? 0 : gaps[0] + gaps[1]);
          const auto part = core::ceil_div(used, ranks);
          FlatLengths padded, lean;
          for (std::int64_t rank = 0; rank < ranks; ++rank) {
            padded.push_back({part});
            lean.push_back({std::clamp<std::int64_t>(used - rank * part, 0, part)});
          }
          INFO(ranks << " ranks, " << first << " and " << second << " elements");
          REQUIRE(hold_every_element(cut_array(padded, 0, sizes, gaps), sizes, padded));
          REQUIRE(hold_every_element(cut_array(lean, 0, sizes, gaps), sizes, lean));
          REQUIRE((cut_array(lean, 0, sizes, gaps) == cut_array(padded, 0, sizes, gaps)));
          lean.back()[0] += 2 * ranks + 1;
          REQUIRE_THROWS_AS(cut_array(lean, 0, sizes, gaps), weights::FlatFault);
        }
      }
    }
  }
}

TEST_CASE("tensors that are cut one by one are found in any arrays of the ranks") {
  for (std::int64_t ranks = 1; ranks <= 5; ++ranks) {
    for (std::int64_t first = 0; first < 9; ++first) {
      for (std::int64_t second = 0; second < 9; ++second) {
        const Sizes sizes = {first, second};
        const auto total = core::ceil_div(first, ranks) + core::ceil_div(second, ranks);
        for (std::int64_t border = 0; border <= total; ++border) {
          const FlatLengths lengths(static_cast<std::size_t>(ranks), {border, total - border});
          INFO(ranks << " ranks, " << first << " and " << second << " elements, border " << border);
          REQUIRE(hold_every_element(cut_tensors(lengths, sizes), sizes, lengths));
          auto longer = lengths;
          longer.back().back() += 1;
          REQUIRE_THROWS_AS(cut_tensors(longer, sizes), weights::FlatFault);
        }
      }
    }
  }
}

TEST_CASE("parameters of ZeRO 1, 2 and 3, their moments, frozen and tied parameters are those of DeepSpeed's memory") {
  const auto name =
      GENERATE(as<std::string>(), "stage1", "stage2", "stage3", "stage2bf16", "stage3bf16", "stage1tied", "stage3tied");
  INFO(name);
  const auto source =
      weights::open_weights(zero_cases / name);  // the folder of Accelerate: `latest` names the one in it
  const auto whole = weights::open_weights(zero_cases / (name + ".safetensors"));
  std::size_t compared = 0;
  for (const auto& tensor : source->names()) {
    INFO(tensor);
    const bool is_second_name = tensor == "again.weight";
    const auto expected = whole->tensor(is_second_name ? "fc2.weight" : tensor);
    CHECK(source->tensor(tensor).equal(expected));
    CHECK(source->spec(tensor) == formats::spec_of(expected));
    ++compared;
    if (is_second_name) CHECK(source->identity(tensor) == source->identity("fc2.weight"));
  }
  const weights::ZeroStates states(zero_cases / name / "pytorch_model");
  CHECK(states.parameters().size() == 5);
  for (const auto& parameter : states.parameters()) {
    INFO(parameter.name);
    REQUIRE(parameter.moments.size() == 2);
    for (const auto& [moment, tensor] : parameter.moments)
      CHECK(states.whole(tensor).equal(whole->tensor(parameter.name + "@" + moment)));
  }
  std::size_t expected = 0;
  for (const auto& tensor : whole->names()) expected += tensor.find('@') == std::string::npos ? 1 : 0;
  CHECK(compared == expected + (name.ends_with("tied") ? 1 : 0));
  source->require_unchanged();
}

TEST_CASE("any range of a parameter that ranks share is read") {
  for (const auto* name : {"stage2", "stage3"}) {
    const auto source = weights::open_weights(zero_cases / name);
    for (const auto* tensor : {"fc1.weight", "norm.bias", "frozen.weight"}) {
      const auto whole = source->tensor(tensor).flatten();
      for (std::int64_t begin = 0; begin <= whole.numel(); ++begin) {
        for (auto end = begin; end <= whole.numel(); ++end) {
          auto range = at::empty({end - begin}, whole.scalar_type());
          source->read(tensor, {begin, end}, static_cast<std::byte*>(range.mutable_data_ptr()));
          INFO(tensor << " from " << begin << " to " << end);
          REQUIRE(range.equal(whole.slice(0, begin, end)));
        }
      }
    }
  }
}

TEST_CASE("a damaged folder of DeepSpeed is refused with the file and the reason") {
  const auto folder = copy_of_zero_case("stage2");
  const auto files = folder / "pytorch_model";
  const auto second = files / "zero_pp_rank_1_mp_rank_00_optim_states.pt";
  const auto expect = [&](const std::string& text) {
    CHECK_THROWS_AS(weights::open_weights(folder), formats::FileError);
    CHECK_THROWS_WITH(weights::open_weights(folder), ContainsSubstring(text));
  };
  SECTION("the last rank's file is missing") {
    fs::remove(second);
    expect("zero_pp_rank_0_mp_rank_00_optim_states.pt was written by 2 ranks, the folder has the files of 1");
  }
  SECTION("the first rank's file is missing") {
    fs::remove(files / "zero_pp_rank_0_mp_rank_00_optim_states.pt");
    expect("The file of rank 0 is missing");
  }
  SECTION("no file of the optimizer was copied") {
    for (const auto* rank : {"0", "1"})
      fs::remove(files / (std::string("zero_pp_rank_") + rank + "_mp_rank_00_optim_states.pt"));
    expect("it has no *_optim_states.pt");
  }
  SECTION("a file is truncated") {
    fs::resize_file(second, 2000);
    expect("zero_pp_rank_1_mp_rank_00_optim_states.pt\" is not valid");
  }
  SECTION("a rank has files of two saves") {
    fs::copy_file(second, files / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt");
    expect("has two files of rank 1");
  }
  SECTION("a file of another stage") {
    fs::copy_file(zero_cases / "stage3" / "pytorch_model" / second.filename(), second,
                  fs::copy_options::overwrite_existing);
    expect("another stage of ZeRO");
  }
  SECTION("the model is of another save") {
    fs::copy_file(zero_cases / "stage3" / "pytorch_model" / "zero_pp_rank_0_mp_rank_00_model_states.pt",
                  files / "mp_rank_00_model_states.pt", fs::copy_options::overwrite_existing);
    expect("the model has 3 groups of parameters, the optimizer 2");
  }
  SECTION("ranks of tensor parallelism") {
    fs::copy_file(files / "mp_rank_00_model_states.pt", files / "mp_rank_01_model_states.pt");
    expect("holds parts of layers, of experts or of a pipeline");
  }
  SECTION("`latest` leads out of the folder") {
    std::ofstream(folder / "latest") << "../copy_of_deepspeed/pytorch_model\n";
    expect("holds no weights");
  }
}
