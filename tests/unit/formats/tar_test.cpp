// Tar archives: those of Python's tarfile (tar/write.py), and damaged ones.
#include <cstring>
#include <filesystem>

#include "formats/tar/members.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using formats::TarFault;

namespace {

std::string archive(const std::string& name) {
  return test::content_of(std::filesystem::path(TAR_CASES) / (name + ".tar"));
}

struct Found {
  std::string name, content;
  bool operator==(const Found&) const = default;
};

std::vector<Found> members_of(const std::string& bytes) {
  const auto read = [&](std::uint64_t offset, void* to, std::size_t size) {
    REQUIRE(offset + size <= bytes.size());
    std::memcpy(to, bytes.data() + offset, size);
  };
  formats::TarMembers members(read, bytes.size());
  std::vector<Found> all;
  while (const auto member = members.next()) {
    REQUIRE(member->offset + member->bytes <= bytes.size());
    all.push_back({member->name, bytes.substr(member->offset, member->bytes)});
  }
  return all;
}

std::string every_byte_thrice() {
  std::string bytes;
  for (int i = 0; i < 3 * 256; ++i) bytes += static_cast<char>(i % 256);
  return bytes;
}

/// The archive with other bytes in its first header, and the checksum that belongs to them.
std::string changed(std::string bytes, std::size_t at, const std::string& value) {
  bytes.replace(at, value.size(), value);
  bytes.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[i]);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  bytes.replace(148, 8, std::string(digits, 7) + ' ');
  return bytes;
}

std::string fault_of(const std::string& bytes) {
  try {
    members_of(bytes);
  } catch (const TarFault& fault) {
    return fault.what();
  }
  return "no fault";
}

}  // namespace

TEST_CASE("the files of ustar, GNU and pax archives are found under their whole names") {
  std::string folders;
  for (int i = 0; i < 5; ++i) folders += "a folder with a long name/";
  const auto long_name = folders + std::string(120, 'x') + ".txt";
  for (const auto* name : {"gnu", "pax"}) {
    INFO(name);
    CHECK((members_of(archive(name)) == std::vector<Found>{{"train/0.txt", "first"},
                                                           {"train/0.cls", "7"},
                                                           {long_name, every_byte_thrice()},
                                                           {"caf\xC3\xA9/1.TXT", ""}}));
  }
  const auto found = members_of(archive("ustar"));
  REQUIRE(found.size() == 3);
  CHECK(found.back().name == std::string(90, 'b') + "/" + std::string(90, 'c') + ".txt");
}

TEST_CASE("a walk continues where an earlier one was") {
  const auto bytes = archive("pax");
  const auto read = [&](std::uint64_t offset, void* to, std::size_t size) {
    std::memcpy(to, bytes.data() + offset, size);
  };
  formats::TarMembers first(read, bytes.size());
  first.next();
  first.next();
  formats::TarMembers second(read, bytes.size(), first.position());
  CHECK(second.next()->name == first.next()->name);
}

TEST_CASE("an archive that is cut anywhere is refused") {
  for (const auto* name : {"ustar", "gnu", "pax"}) {
    const auto bytes = archive(name);
    const auto end = bytes.find_last_not_of('\0') / 512 * 512 + 512;
    for (std::size_t size = 0; size < end + 512; size += 64)
      CHECK_THROWS_AS(members_of(bytes.substr(0, size)), TarFault);
    CHECK(fault_of(bytes.substr(0, end + 512)) == "no fault");
    CHECK_THAT(fault_of(bytes.substr(0, end)), ContainsSubstring("without the mark of its end"));
  }
}

TEST_CASE("what is damaged, or not a plain file, is named") {
  const auto bytes = archive("ustar");
  auto damaged = bytes;
  damaged[0] = 'T';
  CHECK_THAT(fault_of(damaged), ContainsSubstring("has another checksum"));
  for (const auto* type : {"1", "2", "S", "3", "6"}) {
    INFO(type);
    CHECK_THAT(fault_of(changed(bytes, 156, type)), ContainsSubstring("archives of plain files"));
  }
  CHECK_THAT(fault_of(changed(changed(bytes, 156, "0"), 124, "77777777777")),
             ContainsSubstring("it ends within the member"));
  CHECK_THAT(fault_of(changed(changed(bytes, 156, "0"), 124, std::string(12, '\xFF'))),
             ContainsSubstring("a number that is not valid"));
  CHECK_THAT(fault_of(changed(changed(bytes, 156, "L"), 124, "77777777777")),
             ContainsSubstring("a header is extended by"));
  CHECK_THAT(fault_of(bytes + bytes), ContainsSubstring("more follows behind the mark of its end"));
  CHECK_THAT(fault_of("no archive at all"), ContainsSubstring("truncated"));
}

TEST_CASE("pax records are split by their lengths") {
  CHECK(formats::parse_pax_records("10 a=b=\nc\n7 b=xy\n") ==
        std::map<std::string, std::string>{{"a", "b=\nc"}, {"b", "xy"}});
  for (const auto* text :
       {"x", "5", "5 a=b", "4 a=b\n", "99 a=b\n", "6 ab\n", "0 \n", "2 \n", "6 abc\n", "18446744073709551616 a\n"})
    CHECK_THROWS_AS(formats::parse_pax_records(text), TarFault);
}
