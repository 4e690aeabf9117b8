#include "formats/file/replacement.hpp"

#include <fstream>
#include <set>

#include "formats/file/file_error.hpp"
#include "support/catch.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace hortator::formats {

/// The steps of Replacement::publish(), one by one.
struct ReplacementSteps {
  const Replacement& of;

  fs::path replaced() const { return of.replaced(); }
  void move_old_aside() const { of.move_old_aside(); }
  void move_new_in() const { of.move_new_in(); }
  void put_old_back() const { of.put_old_back(); }
  void remove_old() const { of.remove_old(); }
};

}  // namespace hortator::formats

namespace {

using formats::ReplacementSteps;

/// An empty folder.
fs::path empty_folder() {
  const auto folder = fs::absolute("replacements");
  fs::remove_all(folder);
  fs::create_directory(folder);
  return folder;
}

formats::Replacement replacement(const fs::path& target) {
  const auto is_ours = [](const std::string& name) { return name == "state.h5" || name == "seal"; };
  return {target, formats::replacement_id(), {.is_ours = is_ours, .seal = "seal"}};
}

void fill(const formats::Replacement& next, const std::string& content) {
  next.begin();
  std::ofstream(next.staged() / "state.h5") << content;
}

std::string content_at(const fs::path& target) {
  std::string content;
  const auto found = formats::generations(target);
  if (!found.empty()) std::ifstream(found.front() / "state.h5") >> content;
  return content;
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a complete folder is found when a replacement is killed after any step") {
  const auto root = empty_folder();
  const auto target = root / "deep" / "checkpoint";
  const auto first = replacement(target);
  fill(first, "first");
  CHECK(content_at(target).empty());
  first.publish();
  CHECK(content_at(target) == "first");

  const auto second = replacement(target);
  fill(second, "second");
  CHECK(content_at(target) == "first");
  ReplacementSteps{second}.move_old_aside();
  CHECK_FALSE(fs::exists(target));
  CHECK(content_at(target) == "first");
  ReplacementSteps{second}.move_new_in();
  CHECK(content_at(target) == "second");
  CHECK(fs::exists(ReplacementSteps{second}.replaced()));
  ReplacementSteps{second}.remove_old();
  CHECK(content_at(target) == "second");
  CHECK(entries(root / "deep") == 1);
}

TEST_CASE("folders moved aside are found, newest first, and foreign ones are not") {
  const auto root = empty_folder();
  const auto target = root / "checkpoint";
  for (const auto* content : {"older", "newer"}) {
    const auto next = replacement(target);
    fill(next, content);
    ReplacementSteps{next}.move_new_in();
    ReplacementSteps{replacement(target)}.move_old_aside();
  }
  for (const auto* name :
       {"checkpoint.old-mine", "checkpoint.old-", "checkpoint.old-99999999T999999.999999-zzzzzzzz"}) {
    fs::create_directory(root / name);
    std::ofstream(root / name / "state.h5") << "stranger";
  }
  CHECK(content_at(target) == "newer");
  CHECK(formats::generations(target).size() == 2);
  CHECK(formats::generations(root / "other").empty());
  CHECK(formats::generations(root / "none" / "other").empty());
  // The next publication removes them.
  const auto next = replacement(target);
  fill(next, "newest");
  next.publish();
  CHECK(formats::generations(target) == std::vector<fs::path>{target});
  CHECK(fs::exists(root / "checkpoint.old-mine" / "state.h5"));
}

TEST_CASE("an abandoned replacement leaves nothing and changes nothing") {
  const auto root = empty_folder();
  const auto target = root / "checkpoint";
  const auto first = replacement(target);
  fill(first, "first");
  first.publish();
  const auto second = replacement(target);
  fill(second, "second");
  second.abandon();
  CHECK(content_at(target) == "first");
  CHECK(entries(root) == 1);
  second.abandon();
}

TEST_CASE("begin removes the staged folders of killed replacements of the same name, and nothing else") {
  const auto root = empty_folder();
  const auto target = root / "checkpoint";
  const auto killed = replacement(target);
  fill(killed, "killed");
  const auto with_strangers = replacement(target);
  with_strangers.begin();
  std::ofstream(with_strangers.staged() / "state.h5") << "killed";
  std::ofstream(with_strangers.staged() / "notes") << "years";
  const auto later = root / "checkpoint.new-99991231T235959.999999-00000000";
  for (const auto& other :
       {later, root / "checkpoint.new-0mine", root / "checkpoint_2.new-20261121T075530.123456-9f3a51c2"})
    fs::create_directory(other);
  const auto next = replacement(target);
  fill(next, "next");
  CHECK_FALSE(fs::exists(killed.staged()));
  CHECK(fs::exists(with_strangers.staged() / "notes"));
  CHECK_FALSE(fs::exists(with_strangers.staged() / "state.h5"));
  CHECK(fs::exists(later));
  CHECK(entries(root) == 5);
  next.publish();
  CHECK(content_at(target) == "next");
}

TEST_CASE("a failed publication restores the old folder") {
  const auto root = empty_folder();
  const auto target = root / "checkpoint";
  const auto first = replacement(target);
  fill(first, "first");
  first.publish();
  const auto second = replacement(target);
  CHECK_THROWS_AS(second.publish(), formats::FileError);
  CHECK(content_at(target) == "first");

  ReplacementSteps{second}.move_old_aside();
  CHECK_THROWS_AS(ReplacementSteps{second}.move_new_in(), formats::FileError);
  ReplacementSteps{second}.put_old_back();
  CHECK(fs::exists(target));
  CHECK(content_at(target) == "first");
  CHECK(entries(root) == 1);
}

TEST_CASE("a damaged folder is kept under another name when it is replaced, and so is one that was moved aside") {
  const auto root = empty_folder();
  const auto target = root / "checkpoint";
  const auto is_ours = [](const std::string& name) { return name == "state.h5" || name == "seal"; };
  const auto is_damaged = [](const fs::path& folder) {
    return fs::exists(folder / "seal") && !fs::exists(folder / "state.h5");
  };
  const auto next = [&] {
    return formats::Replacement(target, formats::replacement_id(),
                                {.is_ours = is_ours, .seal = "seal", .is_damaged = is_damaged});
  };
  for (const auto& folder : {target, root / "checkpoint.old-20261121T075530.123456-9f3a51c2"}) {
    fs::create_directory(folder);
    std::ofstream(folder / "seal") << "damaged";
  }
  const auto second = next();
  fill(second, "second");
  second.publish();
  CHECK(content_at(target) == "second");
  CHECK(fs::exists(root / "checkpoint.damaged-20261121T075530.123456-9f3a51c2" / "seal"));
  CHECK(entries(root) == 3);
  const auto third = next();
  fill(third, "third");
  third.publish();
  CHECK(content_at(target) == "third");
  CHECK(entries(root) == 3);  // those that are kept stay; the second, which is whole, is removed
}

TEST_CASE("what a killed publication has half removed is removed by the next one") {
  const auto root = empty_folder();
  const auto half = root / "checkpoint.gone-20261121T075530.123456-9f3a51c2";
  fs::create_directory(half);
  std::ofstream(half / "state.h5") << "half";
  const auto next = replacement(root / "checkpoint");
  fill(next, "next");
  CHECK_FALSE(fs::exists(half));
  next.publish();
  CHECK(entries(root) == 1);
}

TEST_CASE("folders with foreign files and plain files are never replaced") {
  const auto root = empty_folder();
  const auto target = root / "home";
  fs::create_directory(target);
  CHECK_NOTHROW(replacement(target).begin());  // empty: nothing can be lost
  std::ofstream(target / "thesis.tex") << "years";
  CHECK_THROWS_WITH(replacement(target).begin(), ContainsSubstring("holds 'thesis.tex'"));
  std::ofstream(root / "file") << "x";
  CHECK_THROWS_WITH(replacement(root / "file").begin(), ContainsSubstring("is not a folder"));
  CHECK_THROWS_WITH(replacement(root / "file" / "below").begin(), ContainsSubstring("below"));

  // A foreign folder that appears while the new one is being filled.
  const auto next = replacement(root / "run");
  fill(next, "new");
  fs::create_directory(root / "run");
  std::ofstream(root / "run" / "notes") << "x";
  CHECK_THROWS_AS(next.publish(), formats::FileError);
  CHECK(fs::exists(root / "run" / "notes"));
}

TEST_CASE("identifiers are unique and sort by time") {
  std::set<std::string> ids;
  std::string last;
  for (int i = 0; i < 100; ++i) {
    const auto id = formats::replacement_id();
    CHECK(id.size() == 31);
    CHECK(id.substr(0, 22) >= last);
    last = id.substr(0, 22);
    ids.insert(id);
  }
  CHECK(ids.size() == 100);
}

TEST_CASE("remove_folder removes a symbolic link but not what it leads to") {
  const auto root = empty_folder();
  const auto archived = replacement(root / "archive" / "checkpoint");
  fill(archived, "archived");
  archived.publish();
  const auto link = root / "checkpoint";
  fs::create_directory_symlink(archived.target(), link);
  CHECK(formats::remove_folder(link, {.is_ours = [](const std::string& /*name*/) { return true; }, .seal = "seal"}));
  CHECK_FALSE(fs::exists(fs::symlink_status(link)));
  CHECK(content_at(archived.target()) == "archived");
}
