// Damaged, truncated and missing checkpoints always give an error that names the problem, never a crash or other values
// than were saved.
#include <chrono>
#include <random>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/read/verify.hpp"
#include "checkpoint/write/save.hpp"
#include "core/checksum/crc.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;
using checkpoint::Reader;
namespace fs = std::filesystem;

namespace {

checkpoint::Snapshot small() {
  checkpoint::Snapshot made;
  made.common.put("a/weight", at::arange(600).to(at::kFloat).reshape({20, 30}));
  made.common.put("a/bias", at::arange(3).to(at::kBFloat16));
  made.common.put("rate", 0.5);
  for (int i = 0; i < 20; ++i) made.common.put("many/value" + std::to_string(i), i);
  for (int i = 0; i < 20; ++i) made.common.put("tensors/t" + std::to_string(i), at::full({200}, i, at::kByte));
  made.common.put("text", std::string(500, 'x'));
  made.own.put("rng", at::zeros({40}, at::kByte));
  return made;
}

/// Everything that a Reader returns, as text.
std::string everything(const fs::path& folder) {
  const Reader reader(folder);
  std::string all;
  const auto add = [&](const at::Tensor& tensor) {
    all.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  };
  for (const auto& [name, spec] : reader.tensors()) {
    all += name + formats::to_string(spec);
    add(reader.read(name));
  }
  std::ostringstream values;
  for (const auto& [name, value] : reader.values().values()) {
    values << name;
    std::visit([&](const auto& plain) { values << plain << "\n"; }, value);
  }
  for (int rank = 0; rank < reader.world_size(); ++rank) add(reader.own(rank).get<at::Tensor>("rng"));
  return all + values.str();
}

/// This rank's own checkpoint, to be damaged. @collective
struct Victim {
  explicit Victim(const mpi::Communicator& comm) {
    const auto root = scratch(comm, "damage");
    checkpoint::save(comm, root / "checkpoint", small());
    folder = root / ("damaged" + std::to_string(comm.rank()));
    fs::copy(root / "checkpoint", folder);
    for (const auto* name : {"manifest.json", "state.h5"}) files[name] = read_file(folder / name);
    whole = everything(folder);
    mpi::barrier(comm);
  }
  /// The error on reading, empty if the saved values are read.
  std::string problem_with(const std::string& name, const std::string& damaged) const {
    write_file(folder / name, damaged);
    std::string found;
    const auto problem = error_of([&] { found = everything(folder); });
    write_file(folder / name, files.at(name));
    if (problem.empty() && found != whole) return "WRONG VALUES";
    return problem;
  }

  fs::path folder;
  std::map<std::string, std::string> files;
  std::string whole;
};

void check_named(const std::string& problem, const std::string& file, const std::string& what) {
  if (problem.find(file) == std::string::npos) FAIL_CHECK(what << ": '" << problem << "'");
}

/// The manifest with a correct checksum.
std::string sealed(std::string text) {
  text.resize(text.rfind(",\n\"crc32c\": "));
  return text + ",\n\"crc32c\": " + std::to_string(core::crc32c(text.data(), text.size())) + "}\n";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto position = text.find(from);
  REQUIRE(position != std::string::npos);
  return text.replace(position, from.size(), to);
}

}  // namespace

TEST_CASE("files truncated anywhere are refused by name") {
  const auto comm = mpi::Communicator::world();
  const Victim victim(comm);
  std::mt19937 random(static_cast<unsigned>(17 + comm.rank()));
  for (const auto& [name, bytes] : victim.files) {
    for (int i = 0; i < 200; ++i) {
      const auto length = std::uniform_int_distribution<std::size_t>(0, bytes.size() - 1)(random);
      check_named(victim.problem_with(name, bytes.substr(0, length)), name, "cut to " + std::to_string(length));
    }
  }
}

TEST_CASE("a flipped bit is detected or harmless; in a tensor it is reported with the dataset") {
  const auto comm = mpi::Communicator::world();
  const Victim victim(comm);
  const auto manifest = checkpoint::read_manifest(victim.folder);
  std::mt19937 random(static_cast<unsigned>(29 + comm.rank()));
  const auto flip = [&](const std::string& name, std::size_t byte) {
    auto damaged = victim.files.at(name);
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << (random() % 8)));
    return victim.problem_with(name, damaged);
  };
  const auto& json = victim.files.at("manifest.json");
  for (int i = 0; i < 400; ++i) check_named(flip("manifest.json", random() % json.size()), "manifest.json", "a flip");
  int structure = 0;
  for (int i = 0; i < 600; ++i) {
    const auto byte = random() % victim.files.at("state.h5").size();
    const auto problem = flip("state.h5", byte);
    if (problem.empty()) ++structure;
    if (!problem.empty()) check_named(problem, "state.h5", "a flip in byte " + std::to_string(byte));
  }
  CHECK(structure > 0);  // what only HDF5 reads
  for (const auto& [name, dataset] : manifest.datasets) {
    const auto bytes = static_cast<std::size_t>(dataset.spec.bytes());
    const auto problem = flip("state.h5", static_cast<std::size_t>(dataset.pieces[0].offset) + random() % bytes);
    CHECK_THAT(problem, ContainsSubstring("state.h5") && ContainsSubstring("'" + name + "'"));
  }
}

TEST_CASE("verify finds every flipped bit, also those that reading ignores, and lists all errors") {
  const auto comm = mpi::Communicator::world();
  const Victim victim(comm);
  const auto manifest = checkpoint::read_manifest(victim.folder);
  std::int64_t read = 0;
  const auto verify = [&] {
    read = 0;
    return checkpoint::verify(victim.folder, manifest, [&](std::int64_t bytes) { read += bytes; });
  };
  CHECK(verify().empty());
  CHECK(read == static_cast<std::int64_t>(victim.files.at("state.h5").size()));
  std::mt19937 random(static_cast<unsigned>(43 + comm.rank()));
  for (int i = 0; i < 200; ++i) {
    auto damaged = victim.files.at("state.h5");
    const auto byte = random() % damaged.size();
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << (random() % 8)));
    write_file(victim.folder / "state.h5", damaged);
    if (verify().empty()) FAIL_CHECK("a flip in byte " << byte << " was not found");
  }
  auto damaged = victim.files.at("state.h5");
  for (const auto* name : {"a/bias", "a/weight"})
    ++damaged[static_cast<std::size_t>(manifest.datasets.at(name).pieces[0].offset)];
  write_file(victim.folder / "state.h5", damaged);
  const auto problems = verify();
  REQUIRE(problems.size() == 2);
  CHECK_THAT(problems[0], ContainsSubstring("'a/bias'"));
  CHECK_THAT(problems[1], ContainsSubstring("'a/weight'"));
}

TEST_CASE("verify reports a missing file once, and does not wait for it once per dataset") {
  const auto comm = mpi::Communicator::world();
  const Victim victim(comm);
  fs::remove(victim.folder / "state.h5");
  const auto begin = std::chrono::steady_clock::now();
  const auto problems =
      checkpoint::verify(victim.folder, checkpoint::read_manifest(victim.folder), [](std::int64_t) {});
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], ContainsSubstring("state.h5") && ContainsSubstring("No such file"));
}

TEST_CASE("a manifest with wrong facts is refused even if its checksum is right") {
  const auto comm = mpi::Communicator::world();
  const Victim victim(comm);
  const auto& json = victim.files.at("manifest.json");
  REQUIRE(sealed(json) == json);
  const auto problem = [&](const std::string& from, const std::string& to) {
    return victim.problem_with("manifest.json", sealed(replaced(json, from, to)));
  };
  for (const auto* name :
       {"/etc/passwd", "../state.h5", "sub/state.h5", "state-1.h5/..", "manifest.json", "state-.h5"}) {
    CHECK_THAT(problem("\"name\":\"state.h5\"", "\"name\":\"" + std::string(name) + "\""),
               ContainsSubstring("names the file") && ContainsSubstring(name));
  }
  CHECK_THAT(problem("\"format\": 2", "\"format\": 3"), ContainsSubstring("has format 3"));
  CHECK_THAT(problem("\"format\": 2", "\"format\": \"2\""),
             ContainsSubstring("does not have the fields of a manifest"));
  CHECK_THAT(problem("\"shape\":[20,30]", "\"shape\":[20,31]"), ContainsSubstring("'a/weight'"));
  CHECK_THAT(problem("\"shape\":[20,30]", "\"shape\":[-20,-30]"), ContainsSubstring("shape is not valid"));
  CHECK_THAT(problem("\"shape\":[20,30]", "\"shape\":[4294967296,4294967296]"),
             ContainsSubstring("shape is not valid"));
  CHECK_THAT(problem("\"type\":\"float32\"", "\"type\":\"float33\""), ContainsSubstring("float33"));
  CHECK_THAT(problem("\"pieces\":[[0,", "\"pieces\":[[0,-"), ContainsSubstring("beyond its file"));
  CHECK_THAT(problem("\"pieces\":[[0,", "\"pieces\":[[0,99"), ContainsSubstring("beyond its file"));
  CHECK_THAT(problem("\"pieces\":[[0,", "\"pieces\":[[1,"), ContainsSubstring("beyond its file"));
  CHECK_THAT(problem("\"crc32c\":[", "\"crc32c\":[1,"), ContainsSubstring("number of checksums differs"));
  const auto deep = std::string(1000, '[') + std::string(1000, ']');
  CHECK_THAT(problem("\"values\": {", "\"deep\": " + deep + ", \"values\": {"), ContainsSubstring("levels deep"));
  CHECK_THAT(victim.problem_with("manifest.json", sealed(",\n\"crc32c\": ")), ContainsSubstring("manifest.json"));
}

TEST_CASE("a folder that is not a checkpoint is refused with the reason") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "no_checkpoint") / std::to_string(comm.rank());
  fs::create_directory(root);
  CHECK_THROWS_WITH(Reader(root / "none"),
                    ContainsSubstring((root / "none").string()) && ContainsSubstring("no such folder"));
  CHECK_FALSE(checkpoint::exists(root / "none"));
  CHECK_THROWS_WITH(Reader(root), ContainsSubstring("manifest.json") && ContainsSubstring("No such file"));
  CHECK_FALSE(checkpoint::exists(root));
  fs::create_directory(root / "text");
  write_file(root / "text" / "manifest.json", "this is a text");
  CHECK_THROWS_WITH(Reader(root / "text"), ContainsSubstring("manifest.json") && ContainsSubstring("no checksum"));
  CHECK_FALSE(checkpoint::exists(root / "text"));
}

TEST_CASE("the newest complete checkpoint that a killed save had moved aside is found") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "aside");
  for (const int variant : {1, 2, 3}) {
    checkpoint::save(comm, root / "elsewhere", snapshot(comm.rank(), variant));
    if (comm.rank() == 0) {
      fs::rename(root / "elsewhere",
                 root / ("checkpoint.old-2026112" + std::to_string(variant) + "T000000.000000-00000000"));
    }
    mpi::barrier(comm);
  }
  CHECK(checkpoint::exists(root / "checkpoint"));
  CHECK(Reader(root / "checkpoint").values().get<int>("epoch") == 3);
  mpi::barrier(comm);
  // The newest was being removed.
  if (comm.rank() == 0) fs::remove(root / "checkpoint.old-20261123T000000.000000-00000000/manifest.json");
  mpi::barrier(comm);
  CHECK(Reader(root / "checkpoint").values().get<int>("epoch") == 2);
  CHECK(checkpoint::candidates(root / "checkpoint").size() == 3);
  mpi::barrier(comm);
  checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 4));
  CHECK(Reader(root / "checkpoint").values().get<int>("epoch") == 4);
  CHECK(entries(root) == 1);
  mpi::barrier(comm);
}
