#include "checkpoint/write/save.hpp"

#include <chrono>
#include <thread>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/read/verify.hpp"
#include "core/text/text.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"
#include "support/types.hpp"

using namespace hortator;
using namespace hortator::testing;
using checkpoint::Reader;

namespace {

/// Random bytes as elements: all NaN payloads, infinities and denormals among them.
at::Tensor random_bits(at::ScalarType type, std::int64_t count) {
  std::string bytes(static_cast<std::size_t>(count) * c10::elementSize(type), '\0');
  std::uint64_t state = 88172645463325252ULL;
  for (auto& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(type == at::kBool ? state & 1 : state);
  }
  auto tensor = at::empty({count}, type);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

void check_same(const Reader& reader, const StateDict& common) {
  for (const auto& [name, value] : common.values()) {
    INFO(name);
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) CHECK(bitwise_equal(reader.read(name), *tensor));
    if (const auto* number = std::get_if<double>(&value)) CHECK(reader.values().get<double>(name) == *number);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) CHECK(reader.values().get<std::int64_t>(name) == *whole);
    if (const auto* text = std::get_if<std::string>(&value)) CHECK(reader.values().get<std::string>(name) == *text);
  }
}

void check_same_own(const StateDict& found, const StateDict& saved) {
  CHECK(found.values().size() == saved.values().size());
  CHECK(found.get<int>("rng/seed") == saved.get<int>("rng/seed"));
  CHECK(bitwise_equal(found.get<at::Tensor>("rng/cpu"), saved.get<at::Tensor>("rng/cpu")));
}

}  // namespace

TEST_CASE("the common state is restored on every rank, and so is each rank's own state") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "round_trip");
  const auto saved = snapshot(comm.rank(), 5);
  CHECK(checkpoint::save(comm, root / "new" / "folders" / "checkpoint/", saved) == root / "new/folders/checkpoint");
  const Reader reader(root / "new/folders/checkpoint/");
  CHECK(reader.world_size() == comm.size());
  check_same(reader, saved.common);
  CHECK(reader.tensors().size() == 5);
  CHECK(reader.values().values().size() == 3);
  for (int rank = 0; rank < comm.size(); ++rank) check_same_own(reader.own(rank), snapshot(rank, 5).own);
  CHECK_THROWS_WITH(reader.own(comm.size()), ContainsSubstring("no state of rank"));
  CHECK(entries(root / "new/folders") == 1);
  CHECK(entries(reader.folder()) == 2);
  CHECK(checkpoint::verify(reader.folder(), reader.manifest(), [](std::int64_t) {}).empty());
}

TEST_CASE("every type is restored bit for bit, whether cut between ranks or not") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "types");
  checkpoint::Snapshot saved;
  for (const auto type : test::stored_types) {
    const std::string name = c10::toString(type);
    saved.common.put("large/" + name, random_bits(type, 300'007));
    saved.common.put("small/" + name, random_bits(type, 5));
    saved.common.put("strided/" + name, random_bits(type, 1000).reshape({10, 100}).t());
    saved.common.put("scalar/" + name, random_bits(type, 1).reshape({}));
    saved.common.put("empty/" + name, random_bits(type, 0));
  }
  checkpoint::save(comm, root / "checkpoint", saved);
  check_same(Reader(root / "checkpoint"), saved.common);
}

TEST_CASE("tensors are read into others of any layout, and only of the same shape and type") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "read_into");
  const auto saved = snapshot(comm.rank(), 1);
  checkpoint::save(comm, root / "checkpoint", saved);
  const Reader reader(root / "checkpoint");
  auto weight = at::zeros({1000, 900}).t();
  weight.set_requires_grad(true);
  reader.read_into("models/0/fc1.weight", weight);
  CHECK(bitwise_equal(weight.detach(), saved.common.get<at::Tensor>("models/0/fc1.weight")));
  CHECK_THROWS_WITH(reader.read_into("models/0/fc1.weight", at::zeros({1000, 900})),
                    ContainsSubstring("'models/0/fc1.weight' is float32 [900, 1000] in the checkpoint") &&
                        ContainsSubstring("float32 [1000, 900] here"));
  CHECK_THROWS_WITH(reader.read_into("models/0/fc1.weight", at::zeros({900, 1000}, at::kDouble)),
                    ContainsSubstring("float64"));
  CHECK_THROWS_WITH(reader.read("models/0/fc1.weigth"), ContainsSubstring("did you mean 'models/0/fc1.weight'"));
  CHECK_THROWS_WITH(reader.read("ranks/0/rng/cpu"), ContainsSubstring("no tensor"));
}

TEST_CASE("tensors of any layout are saved as they read, and read into any layout") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "layouts");
  const auto cube = at::arange(2 * 3 * 4).reshape({2, 3, 4});
  const auto conjugate = at::complex(at::arange(3).to(at::kFloat), at::ones({3})).conj();
  const std::vector<at::Tensor> layouts = {cube.permute({2, 0, 1}),
                                           cube.slice(2, 1, 4, 2),
                                           cube.flip(0).slice(1, 0, 2),
                                           at::arange(14).slice(0, 0, 14, 2),
                                           at::arange(1).expand({5, 2}),
                                           at::arange(3 << 20).reshape({1024, 3072}).t(),
                                           conjugate,
                                           at::imag(conjugate),
                                           at::ones({3}).set_requires_grad(true)};
  checkpoint::Snapshot saved;
  for (std::size_t i = 0; i < layouts.size(); ++i) saved.common.put("t" + std::to_string(i), layouts[i]);
  checkpoint::save(comm, root / "checkpoint", saved);
  const Reader reader(root / "checkpoint");
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    INFO("layout " << i);
    const auto plain = layouts[i].detach().resolve_conj().resolve_neg().contiguous();
    CHECK(bitwise_equal(reader.read("t" + std::to_string(i)), plain));
    if (plain.dim() < 2) continue;
    const auto turned = at::empty_like(plain).transpose(0, 1).contiguous().transpose(0, 1);
    reader.read_into("t" + std::to_string(i), turned);
    CHECK(bitwise_equal(turned, plain));
  }
}

TEST_CASE("many names with many folders come back, and HDF5 finds them where the manifest says") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "many");
  checkpoint::Snapshot saved;
  for (int i = 0; i < 300; ++i) {
    const auto folder = std::string(static_cast<std::size_t>(1 + i % 50), 'n');
    const auto name = text::concat("state/", folder, '/', i);
    saved.common.put(name + "/exp_avg", at::full({i}, i));
    saved.common.put(name + "/step", i);
    saved.own.put("x" + std::to_string(i), at::full({3}, comm.rank(), at::kByte));
  }
  // More than the room that is kept for structure.
  saved.common.put("text", std::string(3'000'000, 'x'));
  checkpoint::save(comm, root / "checkpoint", saved);
  const Reader reader(root / "checkpoint");
  check_same(reader, saved.common);
  const auto own = reader.own(comm.rank());
  CHECK(own.values().size() == 300);
  CHECK(checkpoint::verify(reader.folder(), reader.manifest(), [](std::int64_t) {}).empty());
}

TEST_CASE("a checkpoint replaces the one before it, and only that") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "replace");
  for (const int variant : {1, 2, 3}) checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), variant));
  check_same(Reader(root / "checkpoint"), snapshot(comm.rank(), 3).common);
  CHECK(entries(root) == 1);
  CHECK(entries(root / "checkpoint") == 2);
  // No rank may still look while the next case removes the folder.
  mpi::barrier(comm);
}

TEST_CASE("a link to a folder stays a link") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "links");
  if (comm.rank() == 0) {
    std::filesystem::create_directory(root / "scratch_disk");
    std::filesystem::create_directory_symlink(root / "scratch_disk", root / "run");
  }
  for (const int variant : {1, 2}) {
    CHECK(checkpoint::save(comm, root / "run" / "checkpoint", snapshot(comm.rank(), variant)) ==
          root / "scratch_disk/checkpoint");
  }
  CHECK(std::filesystem::is_symlink(root / "run"));
  CHECK(Reader(root / "run/checkpoint").values().get<int>("epoch") == 2);
}

TEST_CASE("an empty state can be saved") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "nothing");
  checkpoint::save(comm, root / "checkpoint", {});
  const Reader reader(root / "checkpoint");
  CHECK(reader.tensors().empty());
  CHECK(reader.values().empty());
  CHECK(reader.own(0).empty());
}

TEST_CASE("the same state gives the same file") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "same_file");
  std::string bytes[2];
  for (auto& contents : bytes) {
    checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 4));
    const auto file = root / "checkpoint" / "state.h5";
    contents.resize(std::filesystem::file_size(file));
    formats::RawFile::open_for_reading(file).read_at(0, contents.data(), contents.size());
    mpi::barrier(comm);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // times in a file are whole seconds
  }
  CHECK(bytes[0] == bytes[1]);
}
