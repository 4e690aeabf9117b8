// Streams of files that gzip and zstd have compressed, against plain files.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>
#include <iterator>
#include <set>

#include "fixtures.hpp"
#include "formats/compressed/decoder.hpp"
#include "support/catch.hpp"
#include "tar_bytes.hpp"

using namespace hortator;
using namespace hortator::data_test;
namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

namespace {

const fs::path cases = COMPRESSED_CASES;

bool is_built(const std::function<std::unique_ptr<formats::Decoder>()>& make) {
  try {
    return make() != nullptr;
  } catch (const UsageError&) {
    return false;
  }
}

/// The compressions that this build can read: of a file `name`, its names.
std::vector<fs::path> forms_of(const std::string& name) {
  std::vector<fs::path> forms = {cases / name};
  if (is_built(formats::make_gzip_decoder)) forms.push_back(cases / (name + ".gz"));
  if (is_built(formats::make_zstd_decoder)) forms.push_back(cases / (name + ".zst"));
  return forms;
}

std::vector<fs::path> compressed_forms_of(const std::string& name) {
  auto forms = forms_of(name);
  forms.erase(forms.begin());
  return forms;
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Texts lines_of(const fs::path& file) {
  std::ifstream in(file);
  Texts lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

template <typename Stream>
auto rest_of(Stream&& stream) {
  std::vector<std::decay_t<decltype(*stream.next())>> all;
  while (auto sample = stream.next()) all.push_back(*std::move(sample));
  return all;
}

Texts read_lines(const fs::path& file) { return rest_of(LineStream({file})); }

/// Saves the stream after each sample, and continues with another one.
template <typename Make, typename Text>
void check_resumes(const Make& make, const Text& text) {
  const auto all = rest_of(make());
  for (std::size_t stop = 0; stop <= all.size(); ++stop) {
    auto stopped = make();
    for (std::size_t i = 0; i < stop; ++i) stopped.next();
    StateWriter state;
    stopped.save(state);
    auto resumed = make();
    resumed.load(state);
    const auto rest = rest_of(resumed);
    REQUIRE(rest.size() == all.size() - stop);
    for (std::size_t i = 0; i < rest.size(); ++i) CHECK(text(rest[i]) == text(all[stop + i]));
    resumed.reset();
    CHECK(rest_of(resumed).size() == all.size());
  }
}

std::string text_of(const TarSample& sample) {
  auto text = sample.key;
  for (const auto& [extension, content] : sample.files) text += "|" + extension + "=" + content;
  return text;
}

std::string text_of(const TableRow& row) {
  return row.texts.at("s") + " " + std::to_string(row.tensors.at("n").item<std::int64_t>()) + " " +
         std::to_string(row.tensors.at("x").sum().item<float>());
}

const std::vector<TableColumn> members = {{"x"}, {"n", ColumnType::int64}, {"s", ColumnType::text}};

}  // namespace

TEST_CASE("lines of gzip and zstd files are those of the plain file, one file after the other") {
  const auto expected = lines_of(cases / "lines.txt");
  REQUIRE(expected.size() == 41);
  Texts of_all;
  for (const auto& file : forms_of("lines.txt")) {
    INFO(file);
    CHECK(read_lines(file) == expected);
    of_all.insert(of_all.end(), expected.begin(), expected.end());
  }
  CHECK(rest_of(LineStream(forms_of("lines.txt"))) == of_all);
  CHECK(read_lines(write("ends.txt", "a\r\n\nb\r")) == Texts{"a", "", "b\r"});
  CHECK(read_lines(write("empty.txt", "")).empty());
}

TEST_CASE("samples of JSON lines and tar archives are those of the plain file") {
  const JsonLines rows(cases / "rows.jsonl", members);
  for (const auto& file : forms_of("rows.jsonl")) {
    INFO(file);
    const auto read = rest_of(JsonStream({file}, members));
    REQUIRE(std::ssize(read) == rows.size());
    for (std::size_t i = 0; i < read.size(); ++i)
      CHECK(text_of(read[i]) == text_of(rows.get(static_cast<std::int64_t>(i))));
  }
  const TarShards shard({cases / "shard.tar"});
  for (const auto& file : forms_of("shard.tar")) {
    INFO(file);
    const auto read = rest_of(TarStream({file}));
    REQUIRE(std::ssize(read) == shard.size());
    for (std::size_t i = 0; i < read.size(); ++i)
      CHECK(text_of(read[i]) == text_of(shard.get(static_cast<std::int64_t>(i))));
  }
}

TEST_CASE("streams resume after any sample of any file") {
  check_resumes([] { return LineStream(forms_of("lines.txt")); }, [](const std::string& line) { return line; });
  check_resumes([] { return JsonStream(forms_of("rows.jsonl"), members); },
                [](const TableRow& row) { return text_of(row); });
  check_resumes([] { return TarStream(forms_of("shard.tar")); },
                [](const TarSample& sample) { return text_of(sample); });
}

TEST_CASE("a loader over compressed files resumes at its position") {
  const auto make = [] {
    return data_loader(LineStream(forms_of("lines.txt")), {.batch_size = 3}, [](const Texts& lines) { return lines; });
  };
  std::vector<Texts> all;
  for (auto& batch : make()) all.push_back(batch);
  for (std::size_t stop = 1; stop < all.size(); stop += 5) {
    auto stopped = make();
    std::size_t steps = 0;
    for ([[maybe_unused]] auto& batch : stopped)
      if (++steps == stop) break;
    auto resumed = make();
    resumed.load(stopped.state());
    std::vector<Texts> rest;
    for (auto& batch : resumed) rest.push_back(batch);
    CHECK(rest == std::vector<Texts>(all.begin() + static_cast<std::ptrdiff_t>(stop), all.end()));
  }
  auto shuffled = data_loader(ShuffleBuffer(LineStream({cases / "lines.txt"}), {.size = 8}), {.batch_size = 50},
                              [](const Texts& lines) { return lines; });
  for (auto& batch : shuffled) {
    CHECK(batch != lines_of(cases / "lines.txt"));
    CHECK(std::multiset<std::string>(batch.begin(), batch.end()).size() == 41);
  }
}

TEST_CASE("a loader that drops the last batch resumes without opening the files before its position") {
  const auto first = write("before.txt", content_of(cases / "lines.txt"));
  auto files = forms_of("lines.txt");
  files.insert(files.begin(), first);
  const auto make = [&] {
    return data_loader(LineStream(files), {.batch_size = 3, .drop_last = true},
                       [](const Texts& lines) { return lines; });
  };
  std::vector<Texts> all;
  for (auto& batch : make()) all.push_back(batch);
  constexpr std::size_t stop = 15;  // batches of 45 lines; the first file has 41
  auto stopped = make();
  std::size_t steps = 0;
  for ([[maybe_unused]] auto& batch : stopped)
    if (++steps == stop) break;
  auto resumed = make();
  resumed.load(stopped.state());
  fs::remove(first);
  std::vector<Texts> rest;
  for (auto& batch : resumed) rest.push_back(batch);
  CHECK(rest == std::vector<Texts>(all.begin() + stop, all.end()));
}

TEST_CASE("a compressed file that is cut anywhere is an error, except between members") {
  for (const auto& file : compressed_forms_of("lines.txt")) {
    const auto bytes = content_of(file);
    const auto expected = lines_of(cases / "lines.txt");
    std::size_t whole = 0;
    for (std::size_t size = 4; size < bytes.size(); ++size) {
      const auto cut = write("cut", bytes.substr(0, size));
      INFO(file << " of " << size << " bytes");
      try {
        const auto read = read_lines(cut);
        ++whole;
        const auto last = read.empty() ? 0 : read.size() - 1;  // members end within lines
        CHECK(Texts(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(last)) ==
              Texts(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(last)));
      } catch (const Error& error) {
        CHECK_THAT(error.what(), ContainsSubstring("cannot be decompressed"));
      }
    }
    CHECK(whole < 25);  // the ends of members and frames, and the padding of gzip
  }
}

TEST_CASE("a compressed file with a wrong byte is an error, or has the right lines") {
  for (const auto& file : compressed_forms_of("lines.txt")) {
    const auto bytes = content_of(file);
    const auto expected = lines_of(cases / "lines.txt");
    std::size_t errors = 0;
    for (std::size_t at = 4; at < bytes.size(); ++at) {
      auto wrong = bytes;
      wrong[at] = static_cast<char>(wrong[at] ^ 0x55);
      INFO(file << " with a wrong byte " << at);
      try {
        const auto read = read_lines(write("wrong", wrong));
        CHECK(read == expected);
      } catch (const Error& error) {
        ++errors;
        CHECK_THAT(error.what(), ContainsSubstring("\"wrong\" cannot be decompressed"));
      }
    }
    CHECK(errors > bytes.size() / 2);
  }
}

TEST_CASE("a line, or a file in an archive, that is too large is an error before it is in memory") {
  for (const auto* bomb : {"bomb.gz", "bomb.zst"}) {
    const auto path = cases / bomb;
    const bool is_read = is_built(path.extension() == ".gz" ? formats::make_gzip_decoder : formats::make_zstd_decoder);
    CHECK_THROWS_WITH(LineStream({path}, {.max_record_bytes = 1 << 20}).next(),
                      ContainsSubstring(is_read ? "has more than 1048576 bytes" : "This Hortator cannot read"));
  }
  const auto two_lines = write("two.txt", "1234567890\n12345678901\n");
  LineStream lines({two_lines}, {.max_record_bytes = 10});
  CHECK(lines.next().has_value());
  CHECK_THROWS_WITH(lines.next(), ContainsSubstring("two.txt") && ContainsSubstring("has more than 10 bytes"));
  const auto path = write("huge.tar", tar({{"a.txt", "content"}}, (std::uint64_t{8} << 30) - 1));
  CHECK_THROWS_WITH(TarStream({path}).next(), ContainsSubstring("max_record_bytes allows"));
  CHECK_THROWS_WITH(TarStream({path}, {.max_record_bytes = std::uint64_t{1} << 40}).next(),
                    ContainsSubstring("it is truncated"));
}

TEST_CASE("damaged archives are errors that name the file") {
  const auto good = tar({{"a.txt", "content"}, {"b.txt", "more"}});
  const auto problem_of = [](const std::string& bytes) -> std::string {
    TarStream stream({write("damaged.tar", bytes)});
    try {
      rest_of(stream);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  CHECK(problem_of(good) == "none");
  CHECK_THAT(problem_of(good.substr(0, 515)), ContainsSubstring("within the member 'a.txt'"));
  CHECK_THAT(problem_of(good.substr(0, 2048)), ContainsSubstring("\"damaged.tar\" is not a valid tar shard: it ends"));
  CHECK_THAT(problem_of(good + good), ContainsSubstring("more follows behind the mark of its end"));
  CHECK_THAT(problem_of(tar({{"a.txt", "1"}, {"a.txt", "2"}})),
             ContainsSubstring("two files with the extension 'txt'"));
  CHECK_THAT(problem_of(tar({{"a", "1"}})), ContainsSubstring("has no extension"));
}

TEST_CASE("errors in a stream of JSON lines name file and line, also after it was resumed") {
  const auto file = write("bad.jsonl", "{\"n\": 1}\n\n{\"n\": 2}\n{\"n\": \"three\"}\n");
  const std::vector<TableColumn> number = {{"n", ColumnType::int64}};
  JsonStream stream({file}, number);
  for (int i = 0; i < 2; ++i) stream.next();
  StateWriter state;
  stream.save(state);
  CHECK_THROWS_WITH(stream.next(), ContainsSubstring("bad.jsonl:4: the member 'n' is \"three\""));
  JsonStream resumed({file}, number);
  resumed.load(state);
  CHECK_THROWS_WITH(resumed.next(), ContainsSubstring("bad.jsonl:4: "));
  CHECK_THROWS_WITH(JsonStream({file}, {}), ContainsSubstring("No members of JSON lines are named"));
  const auto row = [](const at::Tensor& x) { return TableRow{.tensors = {{"x", x}}}; };
  CHECK(join_rows({row(at::zeros(2)), row(at::ones(2))}).tensors.at("x").sizes() == at::IntArrayRef({2, 2}));
  CHECK_THROWS_WITH(join_rows({row(at::zeros(2)), row(at::ones(3))}),
                    ContainsSubstring("rows[1]: the member 'x' has shape [3], and [2] in rows[0]"));
}

TEST_CASE("what cannot be read is an error when the stream is constructed, or its state is loaded") {
  CHECK_THROWS_WITH(LineStream({}), ContainsSubstring("A stream of no files"));
  CHECK_THROWS_WITH(LineStream({"absent.txt"}), ContainsSubstring("absent.txt"));
  const auto file = write("short.txt", "one\ntwo\n");
  LineStream stream({file});
  stream.next();
  StateWriter state;
  stream.save(state);
  LineStream two({file, file});
  CHECK(two.next() == "one");
  CHECK_THROWS_WITH(two.load(state), ContainsSubstring("A stream of 1 file was saved, and this one has 2") &&
                                         ContainsSubstring("with FilesPerRank, on the same number of ranks"));
  CHECK(rest_of(two) == Texts{"two", "one", "two"});  // where it was
  LineStream other({write("shorter.txt", "on")});
  other.load(state);
  CHECK_THROWS_WITH(other.next(), ContainsSubstring("\"shorter.txt\" has 2 bytes, and 4 had been read of it"));
  FilesPerRank<LineStream> parts({file, file});
  CHECK_THROWS_WITH(parts.shard(3, 0), ContainsSubstring("there are 2 files"));
}

TEST_CASE("data sets that read from any place of a file refuse a compressed one with a hint") {
  CHECK_THROWS_WITH(JsonLines(cases / "rows.jsonl.gz", members), ContainsSubstring("read it in order with JsonStream"));
  CHECK_THROWS_WITH(TarShards({cases / "shard.tar.zst"}), ContainsSubstring("read it in order with TarStream"));
  for (const auto* file : {"lines.txt.gz", "lines.txt.zst"}) {
    INFO(file);
    const std::string hint = "unpack it with gunzip or unzstd";
    CHECK_THROWS_WITH(CsvRows(cases / file), ContainsSubstring("is compressed") && ContainsSubstring(hint));
    CHECK_THROWS_WITH(LabelledTexts(cases / file), ContainsSubstring("is compressed") && ContainsSubstring(hint));
  }
}

TEST_CASE("files that Python and the zstd command wrote", "[.compressed]") {
  const fs::path folder = std::getenv("COMPRESSED_FILES");
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto& file = entry.path();
    const auto plain = fs::path(file).replace_extension();
    if (!fs::exists(plain) || plain == file) continue;
    INFO(file);
    ++files;
    auto expected = lines_of(plain);
    const auto ended = expected.size() - (expected.empty() || content_of(plain).ends_with('\n') ? 0 : 1);
    for (std::size_t i = 0; i < ended; ++i)
      if (expected[i].ends_with('\r')) expected[i].pop_back();
    CHECK(read_lines(file) == expected);
  }
  CHECK(files >= 8);
}
