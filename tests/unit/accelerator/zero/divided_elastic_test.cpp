// Checkpoints of models in every arrangement, loaded by every other: nothing of them depends on how they were divided.
#include <string>
#include <vector>

#include "core/text/text.hpp"
#include "unit/accelerator/tensor/tensor_course.hpp"

using namespace hortator;
using test::check_equal;
using test::tensors_in;
using test::train_alone;
using test::train_on;

namespace {

struct Arrangement {
  int ranks = 1, tensor = 1, stage = 0;

  std::string name() const { return text::concat(ranks, "-ranks-tensor-", tensor, "-stage-", stage); }
  AcceleratorOptions options() const { return {.zero = {.stage = stage}, .parallel = {.tensor = tensor}}; }
};

std::vector<Arrangement> all_arrangements() {
  std::vector<Arrangement> all;
  for (const int ranks : {1, 2, 4}) {
    for (const int tensor : {1, 2, 4}) {
      for (const int stage : {0, 1, 2, 3})
        if (ranks % tensor == 0) all.push_back({.ranks = ranks, .tensor = tensor, .stage = stage});
    }
  }
  return all;
}

/// Loads a checkpoint in an arrangement, and saves it from there.
void pass_through(const Arrangement& by, const std::string& family, const std::filesystem::path& from,
                  const std::filesystem::path& to) {
  train_on(by.ranks, {.family = family, .options = by.options(), .steps = 0, .load = from, .save = to});
}

/// The first checkpoint: of one rank, after a few steps.
std::filesystem::path first_checkpoint(const std::filesystem::path& folder, const std::string& family) {
  train_alone({.family = family, .steps = 3, .save = folder / "first"});
  return folder / "first";
}

}  // namespace

TEST_CASE("a checkpoint goes through all arrangements of tensor, ZeRO and ranks and stays the same, bit by bit") {
  const State state;
  const test::Folder folder(state, "divided_elastic");
  for (const auto* family : {"user", "gpt2", "llama of 43 tokens"}) {
    auto last = first_checkpoint(folder.path() / family, family);
    const auto expected = tensors_in(last);
    for (const auto& by : all_arrangements()) {
      INFO(family << ", " << by.name());
      const auto next = folder.path() / family / by.name();
      pass_through(by, family, last, next);
      check_equal(tensors_in(next), expected);
      last = next;
    }
  }
}

TEST_CASE("every arrangement of tensor, ZeRO and ranks loads the checkpoint of every other, bit by bit", "[.whole]") {
  const State state;
  const test::Folder folder(state, "divided_elastic_whole");
  const auto first = first_checkpoint(folder.path(), "user");
  const auto expected = tensors_in(first);
  for (const auto& from : all_arrangements()) {
    pass_through(from, "user", first, folder.path() / from.name());
    for (const auto& by : all_arrangements()) {
      INFO(from.name() << " to " << by.name());
      pass_through(by, "user", folder.path() / from.name(), folder.path() / "next");
      check_equal(tensors_in(folder.path() / "next"), expected);
    }
  }
}

TEST_CASE("training continues from an arrangement in another as on one rank") {
  const State state;
  const test::Folder folder(state, "divided_resume");
  const auto expected = train_alone({.family = "user", .steps = 6});
  for (const auto& by : {Arrangement{4, 2, 3}, Arrangement{4, 4, 2}, Arrangement{4, 2, 1}}) {
    const auto half = folder.path() / by.name();
    train_on(by.ranks, {.family = "user", .options = by.options(), .steps = 3, .save = half});
    for (const auto& next : {Arrangement{2, 2, 0}, Arrangement{4, 2, 2}, Arrangement{4, 1, 3}}) {
      INFO(by.name() << " to " << next.name());
      const auto found =
          train_on(next.ranks, {.family = "user", .options = next.options(), .first = 3, .steps = 3, .load = half});
      test::check_same(found.losses, {expected.losses.begin() + 3, expected.losses.end()});
    }
  }
}
