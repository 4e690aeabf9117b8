// Files that are no checkpoint, or no whole one: always an error that names the file, never a crash.
#include <hdf5.h>

#include <fstream>

#include "checkpoint/reader.hpp"
#include "checkpoint/save.hpp"
#include "io/hdf5_attribute.hpp"
#include "io/hdf5_file.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;
using checkpoint::Reader;
namespace fs = std::filesystem;

namespace {

checkpoint::Snapshot small() {
  checkpoint::Snapshot made;
  made.common.put("a/weight", at::arange(6).to(at::kFloat).reshape({2, 3}));
  made.common.put("a/bias", at::arange(3).to(at::kBFloat16));
  made.common.put("rate", 0.5);
  for (int i = 0; i < 20; ++i) made.common.put("many/value" + std::to_string(i), i);
  for (int i = 0; i < 20; ++i) made.common.put("tensors/t" + std::to_string(i), at::full({2}, i, at::kByte));
  made.common.put("text", std::string(500, 'x'));
  made.own.put("rng", at::zeros({4}, at::kByte));
  return made;
}

std::string read_file(const fs::path& file) {
  std::string bytes(fs::file_size(file), '\0');
  io::RawFile::open_for_reading(file).read_at(0, bytes.data(), bytes.size());
  return bytes;
}

void write_file(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// All that a Reader gives, as text.
std::string everything(const fs::path& folder) {
  const Reader reader(folder);
  std::ostringstream all;
  for (const auto& [name, spec] : reader.tensors()) all << name << io::to_string(spec) << reader.read(name) << "\n";
  for (const auto& [name, value] : reader.values().values()) {
    all << name;
    std::visit([&](const auto& plain) { all << plain << "\n"; }, value);
  }
  for (int rank = 0; rank < reader.world_size(); ++rank) {
    const auto own = reader.own(rank);
    all << own.get<at::Tensor>("rng").sizes();
  }
  return all.str();
}

/// A folder of this rank's own with a file to be spoilt in it. @collective
struct Victim {
  explicit Victim(const mpi::Communicator& comm) {
    const auto root = scratch(comm, "damage");
    checkpoint::save(comm, root / "checkpoint", small());
    bytes = read_file(root / "checkpoint" / "state.h5");
    folder = root / ("spoilt" + std::to_string(comm.rank()));
    fs::create_directory(folder);
    file = folder / "state.h5";
    write_file(file, bytes);
    whole = everything(folder);
  }
  std::string error_with(const std::string& spoilt) const {
    write_file(file, spoilt);
    return error_of([&] { everything(folder); });
  }

  std::string bytes;
  fs::path folder;
  fs::path file;
  std::string whole;
};

/// A folder with a file that another program might have made.
fs::path foreign(const fs::path& folder, const std::function<void(const io::File&)>& fill) {
  fs::create_directory(folder);
  io::MemoryFile memory;
  auto file = io::create_file(memory);
  fill(file);
  file.close("write");
  memory.copy_to(folder / "state.h5");
  return folder;
}

}  // namespace

TEST_CASE("a file cut off anywhere is refused") {
  const auto comm = mpi::Communicator::world();
  const Victim victim(comm);
  const auto step = static_cast<std::size_t>(comm.size()) * 61;
  for (std::size_t length = static_cast<std::size_t>(comm.rank()); length < victim.bytes.size(); length += step) {
    const auto problem = victim.error_with(victim.bytes.substr(0, length));
    if (problem.find("state.h5") == std::string::npos) FAIL_CHECK("cut to " << length << ": '" << problem << "'");
  }
}

TEST_CASE("a flipped bit in the structure is refused or harms nothing") {
  const auto comm = mpi::Communicator::world();
  const Victim victim(comm);
  std::size_t refused = 0;
  std::size_t changed = 0;
  // Not all of them, as HDF5 takes its time over each; other ones at each number of ranks.
  const auto step = 29 * static_cast<std::size_t>(comm.size());
  for (auto i = static_cast<std::size_t>(29 * comm.rank() + comm.size()); i < victim.bytes.size(); i += step) {
    auto spoilt = victim.bytes;
    spoilt[i] = static_cast<char>(spoilt[i] ^ (1 << (i % 8)));
    const auto problem = victim.error_with(spoilt);
    if (!problem.empty()) ++refused;
    if (problem.empty() && everything(victim.folder) != victim.whole) ++changed;
  }
  refused = mpi::all_reduce<std::uint64_t>(comm, refused, MPI_SUM);
  changed = mpi::all_reduce<std::uint64_t>(comm, changed, MPI_SUM);
  CHECK(refused > 80);
  // Only the tensors' own bytes.
  CHECK(changed <= 10);
}

TEST_CASE("what is no checkpoint is named with the reason") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "no_checkpoint") / std::to_string(comm.rank());
  fs::create_directory(root);
  CHECK_THROWS_WITH(Reader(root / "none"),
                    ContainsSubstring((root / "none").string()) && ContainsSubstring("no such folder"));
  CHECK_FALSE(checkpoint::exists(root / "none"));
  CHECK_THROWS_WITH(Reader(root), ContainsSubstring("holds no state.h5"));
  CHECK_FALSE(checkpoint::exists(root));

  fs::create_directory(root / "text");
  write_file(root / "text" / "state.h5", "this is a text");
  CHECK(checkpoint::exists(root / "text"));
  CHECK_THROWS_WITH(Reader(root / "text"), ContainsSubstring("state.h5") && ContainsSubstring("cannot be read"));
  CHECK_THROWS_WITH(Reader(foreign(root / "foreign", [](const io::File&) {})),
                    ContainsSubstring("has no number 'hortator_format'"));
  const auto with_format = [](const io::SmallValue& format) {
    return [format](const io::File& file) { io::write_attribute(file.get(), "hortator_format", format); };
  };
  CHECK_THROWS_WITH(Reader(foreign(root / "future", with_format(std::int64_t{2}))),
                    ContainsSubstring("it has format 2") && ContainsSubstring("reads format 1"));
  CHECK_THROWS_WITH(Reader(foreign(root / "words", with_format(std::string("1")))),
                    ContainsSubstring("has no number 'hortator_format'"));
  CHECK_THROWS_WITH(Reader(foreign(root / "loop",
                                   [&](const io::File& file) {
                                     with_format(std::int64_t{1})(file);
                                     io::write_attribute(file.get(), "hortator_world_size", std::int64_t{1});
                                     H5Lcreate_hard(file.get(), "/", file.get(), "self", H5P_DEFAULT, H5P_DEFAULT);
                                   })),
                    ContainsSubstring("too deep"));
}
