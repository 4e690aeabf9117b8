#include "runtime/identity/claim.hpp"

#include <fstream>

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using runtime::Claim;
namespace fs = std::filesystem;

namespace {

std::string record_of(const std::string& run) { return R"({"run_id": ")" + run + R"("})"; }

}  // namespace

TEST_CASE("the first claim of a run wins, all later ones lose, also after the record is written") {
  const test::OwnFolder folder("claim");
  const auto dir = folder.path / "a" / "b";
  CHECK(runtime::claim_failure(dir, "run-1") == Claim::won);
  CHECK(runtime::claim_failure(dir, "run-1") == Claim::lost);
  CHECK(runtime::write_failure(dir, "run-1", record_of("run-1")));
  CHECK(runtime::claim_failure(dir, "run-1") == Claim::lost);
  CHECK(runtime::is_failure_claimed(dir, "run-1"));
  CHECK(test::content_of(dir / "failure.json") == record_of("run-1") + "\n");
  CHECK(std::distance(fs::directory_iterator(dir), fs::directory_iterator()) == 1);  // no claim is left
}

TEST_CASE("runs that share a folder report independently") {
  const test::OwnFolder folder("claim");
  CHECK(runtime::claim_failure(folder.path, "run-1") == Claim::won);
  CHECK(runtime::write_failure(folder.path, "run-1", record_of("run-1")));
  CHECK(runtime::claim_failure(folder.path, "run-2") == Claim::won);
  CHECK(runtime::write_failure(folder.path, "run-2", record_of("run-2")));
  CHECK(test::content_of(folder.path / "failure.json") == record_of("run-2") + "\n");
}

TEST_CASE("files of an earlier run are removed, those of this run and of the user stay") {
  const test::OwnFolder folder("claim");
  runtime::claim_failure(folder.path, "run-1");
  runtime::write_failure(folder.path, "run-1", record_of("run-1"));
  std::ofstream(folder.path / "log.jsonl") << "mine";
  runtime::remove_stale_failure(folder.path, "run-1");
  CHECK(fs::exists(folder.path / "failure.json"));
  runtime::remove_stale_failure(folder.path, "run-2");
  CHECK_FALSE(fs::exists(folder.path / "failure.json"));
  CHECK(runtime::claim_failure(folder.path, "run-1") == Claim::won);
  runtime::remove_stale_failure(folder.path, "");
  CHECK(test::content_of(folder.path / "log.jsonl") == "mine");
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
  CHECK_NOTHROW(runtime::remove_stale_failure(folder.path / "nowhere", ""));
  CHECK_FALSE(fs::exists(folder.path / "nowhere"));
}

TEST_CASE("where nothing can be written there is no claim and no record, and no error") {
  const test::OwnFolder folder("claim");
  fs::create_directories(folder.path);
  std::ofstream(folder.path / "file") << "in the way";
  CHECK(runtime::claim_failure(folder.path / "file" / "run", "run-1") == Claim::impossible);
  CHECK_FALSE(runtime::write_failure(folder.path / "file" / "run", "run-1", "{}"));
  CHECK(runtime::claim_failure(folder.path, "") == Claim::impossible);
  fs::create_directories(folder.path / "failure.json" / "in the way");
  CHECK(runtime::claim_failure(folder.path, "run-1") == Claim::won);
  CHECK_FALSE(runtime::write_failure(folder.path, "run-1", record_of("run-1")));
  CHECK_FALSE(fs::exists(folder.path / ".failure-run-1"));
}
