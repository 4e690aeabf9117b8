// Functions that the program lets save_state() and load_state() call.
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "accelerator/prepared/state_hooks.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

TEST_CASE("a hook takes the folder or the scope, and a function that takes anything gets the folder") {
  const auto of_folder = [](const std::filesystem::path&) {};
  const auto of_scope = [](StateHookScope&) {};
  const auto of_anything = [](const auto& folder) { return folder.filename(); };
  const auto of_copy = [](StateHookScope) {};  // what it leaves out would be lost
  STATIC_REQUIRE(std::is_convertible_v<decltype(of_folder), StateHook>);
  STATIC_REQUIRE(std::is_convertible_v<decltype(of_scope), StateHook>);
  STATIC_REQUIRE(std::is_convertible_v<decltype(of_anything), StateHook>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<decltype(of_copy), StateHook>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<int, StateHook>);
}

TEST_CASE("a hook may remove itself, and register another one") {
  test::Folder folder(State(), "hooks_once");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  std::string calls;
  std::optional<StateHookHandle> once;
  once = accelerator.register_save_state_pre_hook(
      [&, name = std::string("a name that is longer than a small string")](const auto&) {
        once->remove();
        accelerator.register_save_state_pre_hook([&](const auto&) { calls += "next "; });
        calls += name + " ";
      });
  accelerator.save_state();
  CHECK(calls == "a name that is longer than a small string ");
  accelerator.save_state();
  CHECK(calls == "a name that is longer than a small string next ");
}

TEST_CASE("a state hook that was removed is erased when the next one is added") {
  accelerator::StateHooks hooks;
  auto first = accelerator::add(hooks, [](const auto&) {});
  accelerator::add(hooks, [](const auto&) {});
  first.remove();
  accelerator::add(hooks, [](const auto&) {});
  CHECK(hooks.size() == 2);
  first.remove();
  CHECK_FALSE(hooks[0]->was_removed());
}

TEST_CASE("hooks run before saving and loading, in order, until removed; one that throws is an error on all ranks") {
  test::Folder folder(State(), "hooks");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  std::string calls;
  accelerator.register_save_state_pre_hook(
      [&](StateHookScope& scope) { calls += "a:" + scope.checkpoint().filename().string() + " "; });
  auto second = accelerator.register_save_state_pre_hook([&](const auto&) { calls += "b "; });
  accelerator.register_load_state_pre_hook(
      [&](StateHookScope& scope) { calls += "l:" + scope.checkpoint().filename().string(); });
  accelerator.save_state();
  second.remove();
  accelerator.save_state(folder.path() / "mine");
  accelerator.load_state();
  CHECK(calls == "a:checkpoint b a:mine l:checkpoint");
  accelerator.register_save_state_pre_hook([&](const auto&) {
    if (accelerator.is_last_process()) throw std::runtime_error("not now");
  });
  CHECK_THROWS_WITH(accelerator.save_state(folder.path() / "never"), ContainsSubstring("not now"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "never"));
  if (accelerator.is_main_process()) {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      CHECK_THAT(entry.path().filename().string(), !ContainsSubstring("never"));
  }
}

TEST_CASE("files that hooks write are part of the checkpoint: replaced, removed and found again with it") {
  test::Folder folder(State(), "hook_files");
  for (const bool asynchronous : {false, true}) {
    Accelerator accelerator({.project = {.dir = folder.path() / std::to_string(asynchronous),
                                         .automatic_checkpoint_naming = true,
                                         .total_limit = 1},
                             .checkpoint = {.asynchronous = asynchronous}});
    torch::nn::Linear net(2, 1);
    auto model = accelerator.prepare(net);
    const auto file = [&](const auto& hooks) {
      return hooks / "adapters" / (std::to_string(accelerator.process_index()) + ".txt");
    };
    std::string content = "first";
    auto writing = accelerator.register_save_state_pre_hook([&](const std::filesystem::path& hooks) {
      CHECK(std::filesystem::is_directory(hooks));
      std::filesystem::create_directories(hooks / "adapters");
      std::ofstream(file(hooks)) << content;
    });
    std::string found;
    accelerator.register_load_state_pre_hook([&](const std::filesystem::path& hooks) {
      found = std::filesystem::exists(hooks) ? test::content_of(file(hooks)) : "none";
    });
    const auto mine = folder.path() / std::to_string(asynchronous) / "mine";
    accelerator.save_state(mine);
    content = "second";
    accelerator.save_state(mine);  // replaces the first
    accelerator.wait_for_checkpoint();
    accelerator.load_state(mine);
    CHECK(found == "second");
    const auto old = accelerator.save_state();
    const auto kept = accelerator.save_state();
    accelerator.wait_for_checkpoint();
    accelerator.wait_for_everyone();
    CHECK_FALSE(std::filesystem::exists(old));
    CHECK(test::content_of(file(kept / "hooks")) == "second");
    writing.remove();
    accelerator.save_state(mine);
    accelerator.wait_for_checkpoint();
    accelerator.load_state(mine);
    CHECK(found == "none");
  }
}

TEST_CASE("a folder of the user's that is called hooks is not taken for a checkpoint's") {
  test::Folder folder(State(), "hooks_of_others");
  Accelerator accelerator;
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  if (accelerator.is_main_process()) std::filesystem::create_directories(folder.path() / "mine" / "hooks");
  accelerator.wait_for_everyone();
  CHECK_THROWS_WITH(accelerator.save_state(folder.path() / "mine"), ContainsSubstring("holds 'hooks', which was not"));
}

TEST_CASE("a strict load names objects and averages that are not registered, and takes over the place in an update") {
  test::Folder folder(State(), "unregistered");
  const auto target = folder.path() / "state";
  struct Counter {
    std::int64_t value = 7;
    void save(StateWriter& out) const { out.put("value", value); }
    void load(const StateReader& in) { value = in.get<std::int64_t>("value"); }
  } counter;
  {
    Accelerator accelerator({.gradient_accumulation_steps = 3});
    torch::nn::Linear net(2, 1);
    auto model = accelerator.prepare(net);
    accelerator.register_for_checkpointing("my/counter", counter);
    Ema ema(accelerator, model, {.decay = 0.5, .name = "slow"});
    for (int i = 0; i <= accelerator.process_index() % 2; ++i) {
      auto micro_step = accelerator.accumulate(model);
    }
    accelerator.save_state(target);
  }
  Accelerator accelerator({.gradient_accumulation_steps = 3});
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  CHECK_THROWS_WITH(accelerator.load_state(target), ContainsSubstring("an object 'my', which is not registered") &&
                                                        ContainsSubstring("averaged weights 'slow', which no Ema has"));
  accelerator.load_state(target, {.strict = false});
  { auto micro_step = accelerator.accumulate(model); }
  CHECK(accelerator.sync_gradients() == (accelerator.process_index() % 2 == 1));
}
