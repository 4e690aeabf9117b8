#include "paging/stores/file_store.hpp"

#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "fixtures.hpp"
#include "formats/file/file_error.hpp"
#include "formats/safetensors/source.hpp"
#include "machine/memory/system_memory.hpp"
#include "support/catch.hpp"
#include "unit/checkpoint/file_limit.hpp"

namespace hortator::paging {
namespace {

using testing::evict_always;
using testing::folder;
using testing::page_in_host;
using testing::pages_of;
using testing::same_bits;

std::vector<NamedTensor> some_tensors(int count) {
  std::vector<NamedTensor> made;
  for (int i = 0; i < count; ++i)
    made.push_back({.name = text::concat("t", i), .tensor = at::arange(100).to(at::kFloat).add(1000 * i)});
  return made;
}

void write_raw(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  std::ofstream out(path, std::ios::binary);
  for (const auto& [name, tensor] : tensors)
    out.write(static_cast<const char*>(tensor.const_data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
}

std::vector<FileLocation> locations_in(const std::filesystem::path& path, std::size_t count, std::uint64_t bytes) {
  const auto file = std::make_shared<formats::FixedFile>(path);
  std::vector<FileLocation> locations;
  for (std::size_t i = 0; i < count; ++i) locations.push_back({.file = file, .offset = i * bytes});
  return locations;
}

std::unique_ptr<Pager> page_from(const std::vector<NamedTensor>& tensors, std::vector<FileLocation> locations,
                                 const FileStore::Options& options) {
  PagedStorages storages(tensors);
  std::vector<std::uint64_t> bytes;
  for (const auto& item : storages.items()) bytes.push_back(item.bytes);
  auto pages = pages_of(storages, 512);
  auto store = std::make_unique<FileStore>(bytes, std::move(locations), options);
  return std::make_unique<Pager>(std::move(storages), std::move(pages), std::move(store),
                                 Pager::Options{.budget_bytes = evict_always, .origin = Pager::Origin::store});
}

std::unique_ptr<FileStore> store_of(std::uint64_t bytes, const std::filesystem::path& scratch) {
  return std::make_unique<FileStore>(std::vector<std::uint64_t>{bytes}, std::vector<FileLocation>(1),
                                     FileStore::Options{.scratch = scratch});
}

constexpr std::uint64_t tensor_bytes = 400;

}  // namespace

TEST_CASE("Pages are read from an existing file", "[file_store]") {
  const auto path = folder("file_store") / "values";
  const auto tensors = some_tensors(5);
  write_raw(path, tensors);
  const auto expected = tensors[3].tensor.clone();
  const auto last = tensors[4].tensor.sum().item<float>();
  for (const auto& tensor : tensors) tensor.tensor.zero_();
  const auto pager = page_from(tensors, locations_in(path, 5, tensor_bytes), {});
  CHECK(same_bits(tensors[3].tensor.clone(), expected));
  CHECK(tensors[4].tensor.sum().item<float>() == last);
}

TEST_CASE("Changes are written to another file: the given one does not change", "[file_store]") {
  const auto path = folder("file_store") / "values";
  const auto tensors = some_tensors(3);
  write_raw(path, tensors);
  const auto scratch = folder("file_store_scratch");
  {
    const auto pager = page_from(tensors, locations_in(path, 3, tensor_bytes), {.scratch = scratch});
    tensors[1].tensor.mul_(2);
    CHECK(tensors[1].tensor[7].item<float>() == 2014);
    CHECK(tensors[2].tensor[7].item<float>() == 2007);
    CHECK(std::filesystem::is_empty(scratch));
    pager->release();
  }
  CHECK(tensors[1].tensor[7].item<float>() == 2014);
  const formats::FixedFile file(path);
  float value = 0;
  file.read_at(tensor_bytes + 7 * sizeof value, &value, sizeof value);
  CHECK(value == 1007);
}

TEST_CASE("Changes without a folder for them throw, and are not lost", "[file_store]") {
  const auto path = folder("file_store") / "values";
  const auto tensors = some_tensors(2);
  write_raw(path, tensors);
  const auto pager = page_from(tensors, locations_in(path, 2, tensor_bytes), {});
  tensors[0].tensor.add_(1);
  CHECK_THROWS_WITH(pager->publish_changed(), ContainsSubstring("file for reading"));
  CHECK(tensors[0].tensor[0].item<float>() == 1);
}

TEST_CASE("A file that was truncated while in use throws an error that says so", "[file_store]") {
  const auto path = folder("file_store") / "values";
  const auto tensors = some_tensors(3);
  write_raw(path, tensors);
  const auto pager = page_from(tensors, locations_in(path, 3, tensor_bytes), {});
  std::filesystem::resize_file(path, tensor_bytes + 10);
  CHECK_THROWS_WITH(tensors[2].tensor.sum(), ContainsSubstring("changed while it was in use"));
  CHECK_THROWS_AS(tensors[0].tensor.sum(), formats::FileError);
}

TEST_CASE("A file that was changed while in use throws an error that says so", "[file_store]") {
  const auto path = folder("file_store") / "values";
  const auto tensors = some_tensors(3);
  write_raw(path, tensors);
  const auto pager = page_from(tensors, locations_in(path, 3, tensor_bytes), {});
  tensors[2].tensor.sum();
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(5));
  CHECK_THROWS_WITH(tensors[2].tensor.sum(), ContainsSubstring("changed while it was in use"));
}

TEST_CASE("A missing file is named in the error", "[file_store]") {
  CHECK_THROWS_WITH(locations_in("no/such/file", 1, 1), ContainsSubstring("no/such/file"));
  CHECK_THROWS_WITH(store_of(8, "no/such/folder"), ContainsSubstring("no/such/folder"));
}

TEST_CASE("A disk that is too small throws at construction", "[file_store]") {
  const auto scratch = folder("file_store_scratch");
  const testing::FileLimit limit(1 << 16);
  CHECK_THROWS_WITH(store_of(1 << 20, scratch), ContainsSubstring("1048576 bytes"));
  CHECK(std::filesystem::is_empty(scratch));
}

TEST_CASE("In a common file each rank writes its part of each storage, and reads all of it", "[file_store]") {
  const auto scratch = folder("file_store_common");
  const std::vector<std::uint64_t> bytes = {64, 4096 + 32, 8};
  const auto first = formats::RawFile::create_to_pass_on(scratch);
  std::vector<std::unique_ptr<FileStore>> stores;
  for (int rank = 0; rank < 2; ++rank) {
    auto file = formats::RawFile::open_passed_on(first.path());
    stores.push_back(std::make_unique<FileStore>(bytes, std::vector<FileLocation>(3), FileStore::Options{},
                                                 CommonScratch{.file = std::move(file), .rank = rank, .ranks = 2}));
  }
  CHECK(FileStore::room_for(bytes) ==
        machine::whole_pages(64) + machine::whole_pages(4096 + 32) + machine::whole_pages(8));
  CHECK(FileStore::room_for({0}) == 0);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto size = bytes[i];
    const Page page{.positions = {{.storage = static_cast<int>(i), .bytes = size}}, .bytes = size};
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const std::vector<std::byte> mine(size, static_cast<std::byte>(10 * (rank + 1) + i));
      stores[rank]->publish(page, mine).wait();
    }
    std::vector<std::byte> expected(size, static_cast<std::byte>(10 + i));
    std::fill(expected.begin() + static_cast<std::ptrdiff_t>(size / 2), expected.end(), static_cast<std::byte>(20 + i));
    for (const auto& store : stores) {
      std::vector<std::byte> seen(size);
      store->fetch(page, seen).wait();
      CHECK((seen == expected));
    }
  }
}

TEST_CASE("Parameters are read directly from a safetensors file", "[file_store]") {
  const auto path = folder("file_store") / "model.safetensors";
  const auto tensors = some_tensors(2);
  const std::string header = R"({"b":{"dtype":"F32","shape":[100],"data_offsets":[0,400]},)"
                             R"("a":{"dtype":"F32","shape":[100],"data_offsets":[400,800]}})";
  {
    std::ofstream out(path, std::ios::binary);
    const auto length = static_cast<std::uint64_t>(header.size());
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header;
    for (const int i : {1, 0})
      out.write(static_cast<const char*>(tensors[static_cast<std::size_t>(i)].tensor.const_data_ptr()), tensor_bytes);
  }
  const auto source = std::make_shared<formats::SafetensorsSource>(path);
  const std::shared_ptr<const formats::FixedFile> file(source, &source->file());
  const auto pager = page_from(
      tensors, {{.file = file, .offset = source->offset("a")}, {.file = file, .offset = source->offset("b")}}, {});
  CHECK(tensors[0].tensor[3].item<float>() == 3);
  CHECK(tensors[1].tensor[3].item<float>() == 1003);
}

}  // namespace hortator::paging
