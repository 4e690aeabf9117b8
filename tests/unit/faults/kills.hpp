#pragma once

#include <filesystem>
#include <functional>

#include "forks.hpp"
#include "support/catch.hpp"

/// A process that saves is killed at each of its calls that change files, one after the other.
namespace hortator::test {

/// How numbered versions of something are saved and found.
struct Versions {
  std::filesystem::path root;            ///< where the calls count
  std::function<void(int)> save;         ///< one in the place of the one before
  std::function<int()> found;            ///< the number of the one that is there, whole; else another number
  std::function<bool()> exists;          ///< whether there is one at all
  std::function<void()> check = [] {};   ///< what else must hold after a save that nobody killed
  static constexpr int max_calls = 250;  ///< that one save may take: each is one more fork
};

/// Saves version `number` in a fork that is killed at its call `at`.
inline int killed_save(const Versions& versions, int number, long at) {
  return in_fork([&] {
    faults::arm(versions.root.string(), {.kind = faults::Kind::kill, .at = at});
    versions.save(number);
    return 0;
  });
}

/// A kill within a first save leaves nothing that passes for a version, or the whole of it.
inline void check_kills_of_first_save(const Versions& versions) {
  fresh_folder();
  const auto calls = count_calls(versions.root, [&] { versions.save(1); });
  REQUIRE(calls > 8);
  REQUIRE(calls < Versions::max_calls);
  int whole = 0;
  for (long at = 1; at <= calls + 1; ++at) {
    INFO("killed at call " << at << " of " << calls);
    fresh_folder();
    CHECK(killed_save(versions, 1, at) == (at <= calls ? killed : 0));
    if (versions.exists()) {
      ++whole;
      CHECK(versions.found() == 1);
    }
    versions.save(2);  // what is left lies in nobody's way
    CHECK(versions.found() == 2);
    versions.check();
  }
  CHECK(whole >= 1);
  CHECK(whole < calls);
}

/// A kill within an overwrite leaves the older version or the newer one.
inline void check_kills_of_overwrite(const Versions& versions) {
  fresh_folder();
  versions.save(1);
  const auto calls = count_calls(versions.root, [&] { versions.save(2); });
  REQUIRE(calls > 8);
  REQUIRE(calls < Versions::max_calls);
  bool older = false;
  bool newer = false;
  for (long at = 1; at <= calls; ++at) {
    INFO("killed at call " << at << " of " << calls);
    fresh_folder();
    versions.save(1);
    CHECK(killed_save(versions, 2, at) == killed);
    const auto found = versions.found();
    CHECK((found == 1 || found == 2));
    CHECK_FALSE((newer && found == 1));  // once it is there it stays
    older = older || found == 1;
    newer = newer || found == 2;
    versions.save(3);
    CHECK(versions.found() == 3);
    versions.check();
  }
  CHECK(older);
  CHECK(newer);
}

}  // namespace hortator::test
