#pragma once

#include <filesystem>
#include <functional>

#include "forks.hpp"
#include "support/catch.hpp"

/// Kills a saving process at each of its calls that change files, one after the other.
namespace hortator::test {

/// How to save and find numbered versions of something.
struct Versions {
  std::filesystem::path root;            ///< calls below this folder count
  std::function<void(int)> save;         ///< saves a version over the previous one
  std::function<int()> found;            ///< the number of the complete version, or another number
  std::function<bool()> exists;          ///< whether there is any version
  std::function<void()> check = [] {};   ///< further checks after an uninterrupted save
  static constexpr int max_calls = 250;  ///< limit for the calls of one save: each costs one fork
};

/// Saves version `number` in a fork that is killed at its call `at`.
inline int killed_save(const Versions& versions, int number, long at) {
  return in_fork([&] {
    faults::arm(versions.root.string(), {.kind = faults::Kind::kill, .at = at});
    versions.save(number);
    return 0;
  });
}

/// Checks that a kill within a first save leaves no version or a complete one.
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
    versions.save(2);  // leftovers do not disturb it
    CHECK(versions.found() == 2);
    versions.check();
  }
  CHECK(whole >= 1);
  CHECK(whole < calls);
}

/// Checks that a kill within an overwrite leaves the older version or the newer one.
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
    CHECK_FALSE((newer && found == 1));  // once the newer version is there, it stays
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
