#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <hortator/training/answers.hpp>
#include <new>
#include <numeric>
#include <thread>

#include "accelerator/answers/answer_batches.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> prompts_of(int count) {
  std::vector<std::string> prompts;
  for (int i = 0; i < count; ++i)
    prompts.push_back(std::to_string(i) + std::string(static_cast<std::size_t>(i * 7 % 13), '.'));
  return prompts;
}

std::string answer_to(const std::string& prompt) { return "<" + prompt + ">"; }

std::vector<std::string> answer_all(const std::vector<std::string>& prompts) {
  std::vector<std::string> answers;
  for (const auto& prompt : prompts) answers.push_back(answer_to(prompt));
  return answers;
}

/// The path of a folder for all ranks, which does not exist at first. @collective
fs::path shared_folder(const State& state, const std::string& name) {
  const auto folder = fs::absolute(name);
  state.main_process_first([&] {
    if (state.is_main_process()) fs::remove_all(folder);
  });
  return folder;
}

}  // namespace

TEST_CASE("answers come back in the prompts' order on every rank, for any number of prompts") {
  const State state;
  for (const int count : {0, 1, 2, 3, 5, 17, 100}) {
    const auto prompts = prompts_of(count);
    for (const std::int64_t batch_size : {1, 3, 64})
      CHECK(answer_prompts(state, prompts, answer_all, {.batch_size = batch_size}) == answer_all(prompts));
  }
}

TEST_CASE("one rank of each node shows its progress") {
  const State state;
  const auto output = test::written_to(STDERR_FILENO, [&] { answer_prompts(state, prompts_of(20), answer_all); });
  CHECK((output.find("answering") != std::string::npos) == state.is_local_main_process());
}

TEST_CASE("each prompt is answered once, and prompts are distributed evenly over the ranks") {
  const State state;
  const auto prompts = prompts_of(41);
  std::int64_t answered = 0;
  answer_prompts(state, prompts, [&](const std::vector<std::string>& batch) {
    answered += std::ssize(batch);
    return answer_all(batch);
  });
  const auto all = mpi::all_gather(state.world().comm(), answered);
  CHECK(std::accumulate(all.begin(), all.end(), std::int64_t{0}) == 41);
  CHECK(answered == 41 / state.num_processes() + (state.process_index() < 41 % state.num_processes() ? 1 : 0));
}

TEST_CASE("batches hold prompts of similar length, the longest first, within the limits on size and length") {
  std::vector<hortator::detail::PromptFacts> facts;
  for (const std::int64_t length : {3, 10, 4, 9, 1, 2}) facts.push_back({.length = length});
  using Batches = std::vector<std::vector<std::int64_t>>;
  CHECK(accelerator::batches_of({0, 1, 2, 3, 4, 5}, facts, {.batch_size = 4}) == Batches{{1, 3, 2, 0}, {5, 4}});
  CHECK(accelerator::batches_of({0, 1, 2, 3, 4, 5}, facts, {.batch_size = 4, .max_batch_length = 12}) ==
        Batches{{1}, {3}, {2, 0, 5}, {4}});
  CHECK(accelerator::batches_of({1, 4}, facts, {.batch_size = 8, .max_batch_length = 5}) == Batches{{1}, {4}});
  CHECK(accelerator::batches_of({}, facts, {}).empty());
}

TEST_CASE("prompts and answers may be of any serializable type") {
  const State state;
  std::vector<at::Tensor> prompts;
  for (int i = 0; i < 9; ++i) prompts.push_back(at::full({i + 1}, i));
  const auto sums = answer_prompts(state, prompts, [](const std::vector<at::Tensor>& batch) {
    std::vector<std::pair<double, bool>> answers;
    for (const auto& prompt : batch) answers.emplace_back(prompt.sum().item<double>(), prompt.numel() > 4);
    return answers;
  });
  for (int i = 0; i < 9; ++i) CHECK(sums[static_cast<std::size_t>(i)] == std::pair<double, bool>(i * (i + 1), i > 3));
}

TEST_CASE("a batch that does not fit into memory is halved until it does") {
  const State state;
  const auto prompts = prompts_of(40);
  std::size_t largest = 0;
  const auto answers = answer_prompts(state, prompts,
                                      [&](const std::vector<std::string>& batch) {
                                        if (batch.size() > 3) throw std::bad_alloc();
                                        largest = std::max(largest, batch.size());
                                        return answer_all(batch);
                                      },
                                      {.batch_size = 16});
  CHECK(answers == answer_all(prompts));
  CHECK(largest <= 3);
  CHECK(largest > 0);
}

TEST_CASE("a prompt that cannot be answered costs only its own answer, and all ranks report it") {
  const State state;
  const auto prompts = prompts_of(50);
  const auto failing = prompts[49];  // the last rank's
  try {
    answer_prompts(state, prompts,
                   [&](const std::vector<std::string>& batch) {
                     for (const auto& prompt : batch) {
                       if (prompt == failing) throw std::runtime_error("the model said no");
                     }
                     return answer_all(batch);
                   },
                   {.batch_size = 8});
    FAIL("nothing was thrown");
  } catch (const IncompleteAnswers<std::string>& error) {
    CHECK(error.rank() == state.num_processes() - 1);
    CHECK_THAT(error.what(), ContainsSubstring("failed on prompts 49: the model said no") &&
                                 ContainsSubstring("49 of 50 prompts are answered"));
    REQUIRE(error.answers().size() == 50);
    CHECK_FALSE(error.answers()[49].has_value());
    for (int i = 0; i < 49; ++i)
      CHECK(error.answers()[static_cast<std::size_t>(i)] == answer_to(prompts[static_cast<std::size_t>(i)]));
  }
}

TEST_CASE("kept answers are not computed again, although the ranks get other prompts") {
  const State state;
  const auto folder = shared_folder(state, "kept_answers");
  const auto prompts = prompts_of(60);
  std::int64_t answered = 0;
  bool fails = true;
  const auto answer = [&](const std::vector<std::string>& batch) {
    if (fails && answered >= 5) throw std::runtime_error("killed");
    answered += std::ssize(batch);
    return answer_all(batch);
  };
  const AnswerOptions options{.batch_size = 2, .keep = folder};
  CHECK_THROWS_AS(answer_prompts(state, prompts, answer, options), IncompleteAnswers<std::string>);
  const auto before = mpi::all_reduce(state.world().comm(), answered, mpi::Op::sum);
  CHECK(before == 6 * state.num_processes());
  answered = 0;
  fails = false;
  CHECK(answer_prompts(state, prompts, answer, options) == answer_all(prompts));
  CHECK(mpi::all_reduce(state.world().comm(), answered, mpi::Op::sum) == 60 - before);
  state.wait_for_everyone();
  CHECK_FALSE(fs::exists(folder));  // removed, because all prompts are answered
}

TEST_CASE("kept answers of other prompts, and truncated ones, are ignored") {
  const State state;
  const auto folder = shared_folder(state, "cut_answers");
  const auto some = prompts_of(8);
  bool fails = true;
  const auto answer = [&](const std::vector<std::string>& batch) {
    if (fails && batch[0] == some[7]) throw std::runtime_error("killed");
    return answer_all(batch);
  };
  CHECK_THROWS(answer_prompts(state, some, answer, {.batch_size = 1, .keep = folder}));
  state.wait_for_everyone();
  state.on_main_process([&] {
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.file_size() > 0) fs::resize_file(file.path(), file.file_size() - 1);
    }
  });
  state.wait_for_everyone();
  fails = false;
  auto others = some;
  others[0] = "another";
  CHECK(answer_prompts(state, others, answer, {.keep = folder}) == answer_all(others));
}

TEST_CASE("different prompts on ranks, and too few answers, are errors on all ranks") {
  const State state;
  auto prompts = prompts_of(6);
  CHECK_THROWS_WITH(
      answer_prompts(state, prompts,
                     [](const std::vector<std::string>& batch) { return std::vector<std::string>(batch.size() - 1); }),
      ContainsSubstring("answer"));
  CHECK_THROWS_AS(answer_prompts(state, prompts, answer_all, {.batch_size = 0}), Error);
  if (state.num_processes() == 1) return;
  prompts[0] += std::to_string(state.process_index());
  CHECK_THROWS_WITH(answer_prompts(state, prompts, answer_all), ContainsSubstring("different prompts"));
}
