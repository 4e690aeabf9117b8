// One rank saves a small model while every call that changes a file fails in turn. Each save runs in a fork of this
// process, so that it can be killed, with an interposed file system (support/faults).
#include <cerrno>
#include <filesystem>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/background_save.hpp"
#include "checkpoint/write/save.hpp"
#include "forks.hpp"
#include "kills.hpp"
#include "support/catch.hpp"

using namespace hortator;
using faults::Fault;
using faults::Kind;
using test::count_calls;
using test::fresh_folder;
using test::in_fork;
namespace fs = std::filesystem;

namespace {

// Numbers that differ between versions, in several types; a 0-dim tensor, an empty one, and values.
checkpoint::Snapshot version(int number) {
  checkpoint::Snapshot made;
  made.common.put("net/weight", at::full({33, 7}, number + 0.25));
  made.common.put("net/bias", at::full({7}, number, at::kBFloat16));
  made.common.put("steps", at::full({}, number, at::kLong));
  made.common.put("none", at::empty({0, 3}));
  made.common.put("number", number);
  made.own.put("random", at::full({16}, number, at::kByte));
  return made;
}

constexpr int neither = -1;

// The version that `folder` holds completely; `neither` if it holds none.
int version_in(const fs::path& folder) {
  const checkpoint::Reader reader(folder);
  const auto number = reader.values().get<int>("number");
  const auto expected = version(number);
  for (const auto& [name, value] : expected.common.values()) {
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
      if (!at::equal(reader.read(name), *tensor)) return neither;
    }
  }
  return at::equal(reader.own(0).get<at::Tensor>("random"), expected.own.get<at::Tensor>("random")) ? number : neither;
}

void save(const fs::path& folder, int number) { checkpoint::save(mpi::Communicator::world(), folder, version(number)); }

void save_in_background(const fs::path& folder, int number) {
  checkpoint::BackgroundSave saves;
  saves.start(mpi::Communicator::world(), folder, version(number), {});
  saves.wait(mpi::Communicator::world());
}

/// The versions that `save` makes. A kill leaves nothing behind once the next version is saved.
template <typename Save>
test::Versions checkpoints(const Save& save) {
  const auto root = fresh_folder();
  const auto folder = root / "checkpoint";
  return {.root = root,
          .save = [=](int number) { save(folder, number); },
          .found = [=] { return version_in(folder); },
          .exists = [=] { return checkpoint::exists(folder); },
          .check = [=] { CHECK(std::distance(fs::directory_iterator(root), fs::directory_iterator()) == 1); }};
}

}  // namespace

TEST_CASE("a kill at any point of a first save leaves no checkpoint or a complete one") {
  test::check_kills_of_first_save(checkpoints(save));
}

TEST_CASE("a kill at any point of an overwrite leaves the older checkpoint or the newer one") {
  test::check_kills_of_overwrite(checkpoints(save));
}

TEST_CASE("a kill at any point of a background save leaves the older checkpoint or the newer one") {
  test::check_kills_of_first_save(checkpoints(save_in_background));
  test::check_kills_of_overwrite(checkpoints(save_in_background));
}

TEST_CASE("a call that fails is an error that leaves the older checkpoint, or harms nothing; the next save works") {
  const auto root = fresh_folder();
  const auto folder = root / "checkpoint";
  save(folder, 1);
  const auto calls = count_calls(root, [&] { save(folder, 2); });
  for (const int error : {ENOSPC, EIO, EDQUOT}) {
    for (const bool on : {false, true}) {
      int thrown = 0;
      for (long at = 1; at <= calls; ++at) {
        INFO("errno " << error << " at call " << at << " of " << calls << (on ? " and all after it" : ""));
        fresh_folder();
        save(folder, 1);
        const auto end = in_fork([&] {
          faults::arm(root.string(), {.kind = Kind::error, .at = at, .error = error, .on = on});
          try {
            save(folder, 2);
          } catch (const Error& problem) {
            faults::disarm();
            // On a disk that keeps failing, the newer checkpoint cannot be undone once it is in place.
            const auto left = version_in(folder);
            if (left != 1 && !(on && left == 2)) return 3;
            save(folder, 2);
            return version_in(folder) == 2 ? 1 : 4;
          }
          faults::disarm();
          return version_in(folder) == 2 ? 0 : 5;
        });
        CHECK((end == 0 || end == 1));
        thrown += end;
        CHECK(version_in(folder) == 2);
      }
      CHECK(thrown > calls / 2);
    }
  }
}

TEST_CASE("short writes are continued") {
  const auto root = fresh_folder();
  const auto folder = root / "checkpoint";
  const auto whole = count_calls(root, [&] { save(folder, 1); });
  fresh_folder();
  CHECK(in_fork([&] {
          faults::arm(root.string(), {.kind = Kind::shorter, .at = 1, .on = true});
          save(folder, 1);
          return faults::disarm() > whole ? 0 : 1;  // what a call has left needs another one
        }) == 0);
  CHECK(version_in(folder) == 1);
}

TEST_CASE("folders created for a checkpoint are as durable as the checkpoint") {
  const auto root = fresh_folder();
  const auto calls = [&](const fs::path& folder) { return count_calls(root, [&] { save(folder, 1); }); };
  // Each folder is created, and its parent is flushed.
  CHECK(calls(root / "a" / "b" / "c" / "checkpoint") == calls(root / "checkpoint") + 3 * 2);
}

TEST_CASE("a signal during a call is not a disk error") {
  const auto root = fresh_folder();
  const auto folder = root / "checkpoint";
  save(folder, 1);
  const auto calls = count_calls(root, [&] { save(folder, 2); });
  int thrown = 0;
  for (long at = 1; at <= calls; ++at) {
    fresh_folder();
    save(folder, 1);
    thrown += in_fork([&] {
      faults::arm(root.string(), {.kind = Kind::error, .at = at, .error = EINTR});
      try {
        save(folder, 2);
        return 0;
      } catch (const Error& problem) {
        return 1;
      }
    });
  }
  // No system interrupts these: the folder is made, and two get other names.
  CHECK(thrown == 3);
}
