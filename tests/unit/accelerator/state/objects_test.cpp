#include <limits>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

struct Plain {
  int rank = -1;
  double value = 0;
  bool operator==(const Plain&) const = default;
};

struct Answer {
  std::string text;
  std::optional<std::vector<double>> scores;
  std::map<int, Plain> table;
  auto fields() { return std::tie(text, scores, table); }
  bool operator==(const Answer&) const = default;
};

struct Node {  // a recursive type
  int number = 0;
  std::vector<Node> children;
  auto fields() { return std::tie(number, children); }
};

class RunningAverage {
 public:
  RunningAverage() = default;
  explicit RunningAverage(double value) : value_(value), weights_(at::full({2}, value)) {}
  void save(StateWriter& out) const {
    out.put("value", value_);
    out.put("name", "average");
    out.put("weights", weights_);
  }
  void load(const StateReader& in) {
    value_ = in.get<double>("value");
    weights_ = in.get<at::Tensor>("weights");
  }
  double value() const { return value_ + weights_[1].item<double>(); }

 private:
  double value_ = 0;
  at::Tensor weights_ = at::zeros({2});
};

/// A third-party type that is not serializable without ObjectTraits.
class Celsius {
 public:
  Celsius() = default;
  explicit Celsius(double degrees) : degrees_(std::make_unique<double>(degrees)) {}
  double degrees() const { return *degrees_; }

 private:
  std::unique_ptr<double> degrees_;
};

struct Wrong {  // does not read what it writes
  void save(StateWriter& out) const { out.put("a", 1); }
  void load(const StateReader& in) { in.get<int>("b"); }
};

enum class Color { red, green };

}  // namespace

template <>
struct hortator::ObjectTraits<Celsius> {
  static void write(ObjectWriter& out, const Celsius& value) { out.write_plain(value.degrees()); }
  static void read(ObjectReader& in, Celsius& value) {
    double degrees = 0;
    in.read_plain(degrees);
    value = Celsius(degrees);
  }
};

static_assert(Serializable<Plain> && Serializable<Answer> && Serializable<Node> && Serializable<RunningAverage>);
static_assert(Serializable<std::variant<std::monostate, Color, std::set<std::string>>> && Serializable<Celsius>);
static_assert(Serializable<nlohmann::json> && Serializable<nlohmann::ordered_json> && Serializable<StateDict::Value>);
static_assert(Serializable<at::Tensor> && Serializable<Example<>> && Serializable<std::vector<bool>>);
static_assert(!Serializable<const char*> && !Serializable<std::string_view> && !Serializable<std::span<int>>);
static_assert(!Serializable<std::vector<int*>> && !Serializable<std::array<std::string_view, 2>>);
static_assert(!Serializable<std::pair<int, const char*>> && !Serializable<std::unique_ptr<int>>);

namespace {

template <typename T>
T through_bytes(const T& value) {
  T copy{};
  hortator::detail::decode(hortator::detail::encode(value), copy);
  return copy;
}

}  // namespace

TEST_CASE("objects of all kinds are restored from their bytes") {
  CHECK(through_bytes(7) == 7);
  CHECK(through_bytes(Color::green) == Color::green);
  CHECK(through_bytes(Plain{.rank = 3, .value = 0.5}) == Plain{3, 0.5});
  CHECK(through_bytes(std::string("a\0b", 3)).size() == 3);
  CHECK(through_bytes(std::vector<bool>{true, false, true}) == std::vector<bool>{true, false, true});
  CHECK(through_bytes(std::set<std::string>{"b", "a"}) == std::set<std::string>{"a", "b"});
  CHECK(through_bytes(std::array<std::string, 2>{"x", ""}) == std::array<std::string, 2>{"x", ""});
  CHECK(through_bytes(std::unordered_map<std::string, int>{{"a", 1}, {"b", 2}}).at("b") == 2);
  CHECK(through_bytes(std::tuple(1, std::string("x"), std::optional<int>())) ==
        std::tuple(1, std::string("x"), std::optional<int>()));
  using Choice = std::variant<int, std::string, std::vector<double>>;
  for (const auto& choice : {Choice(4), Choice("four"), Choice(std::vector{4.0})})
    CHECK(through_bytes(choice) == choice);
  const Answer answer{.text = "yes", .scores = std::vector{0.5, 1.5}, .table = {{-1, {7, 0.25}}}};
  CHECK(through_bytes(answer) == answer);
  const auto tree = through_bytes(Node{1, {{2, {}}, {3, {{4, {}}}}}});
  CHECK(tree.children[1].children[0].number == 4);
  CHECK(through_bytes(RunningAverage(1.5)).value() == 3);
  CHECK(through_bytes(Celsius(20)).degrees() == 20);
}

TEST_CASE("tensors and JSON keep every bit") {
  const auto tensor = at::arange(6, at::kBFloat16).view({2, 3}).t();
  const auto copy = through_bytes(tensor);
  CHECK(copy.scalar_type() == at::kBFloat16);
  CHECK(at::equal(copy, tensor));
  CHECK_FALSE(through_bytes(at::Tensor()).defined());
  CHECK(through_bytes(at::empty({0, 3})).sizes() == at::IntArrayRef{0, 3});
  const nlohmann::json json = {
      {"a", 0.1}, {"b", {1, nullptr, "x\xff"}}, {"big", std::numeric_limits<std::uint64_t>::max()}};
  CHECK((through_bytes(json) == json));
  const nlohmann::json nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(through_bytes(nan).is_number_float());
}

TEST_CASE("bytes of another type are refused") {
  std::string text;
  CHECK_THROWS_WITH(hortator::detail::decode(hortator::detail::encode(0xffffffffffffffffULL), text),
                    ContainsSubstring("end early"));
  std::vector<int> numbers;
  CHECK_THROWS_WITH(hortator::detail::decode(hortator::detail::encode(std::uint64_t{3}), numbers),
                    ContainsSubstring("end early"));
  int number = 0;
  CHECK_THROWS_WITH(hortator::detail::decode(hortator::detail::encode(std::pair(1, 2)), number),
                    ContainsSubstring("unread"));
}

TEST_CASE("gather_object concatenates vectors in rank order, and makes a vector of everything else") {
  const Accelerator accelerator;
  const int n = accelerator.num_processes();
  const int me = accelerator.process_index();
  // Rank r contributes r answers, rank 0 none.
  std::vector<Answer> mine(static_cast<std::size_t>(me),
                           Answer{.text = "from " + std::to_string(me), .scores = {}, .table = {}});
  const auto answers = accelerator.gather_object(mine);
  REQUIRE(answers.size() == static_cast<std::size_t>(n * (n - 1) / 2));
  if (n > 1) {
    CHECK(answers.front().text == "from 1");
    CHECK(answers.back().text == "from " + std::to_string(n - 1));
  }
  const std::vector<std::string> texts = accelerator.gather_object(std::string("rank ") + std::to_string(me));
  CHECK(texts.size() == static_cast<std::size_t>(n));
  CHECK(texts[static_cast<std::size_t>(n - 1)] == "rank " + std::to_string(n - 1));
  const std::vector<Plain> plain = accelerator.gather_object(Plain{.rank = me});
  CHECK(plain[static_cast<std::size_t>(me)].rank == me);
  CHECK(accelerator.gather_object(std::vector<bool>{me % 2 == 0}).size() == static_cast<std::size_t>(n));
  CHECK(accelerator.gather_object(nlohmann::json{{"rank", me}})[static_cast<std::size_t>(n - 1)]["rank"] == n - 1);
}

TEST_CASE("broadcast_object_list replaces the list on all ranks by that of one process") {
  const Accelerator accelerator;
  const int n = accelerator.num_processes();
  const int me = accelerator.process_index();
  for (int from = 0; from < n; ++from) {
    std::vector<std::variant<int, std::string>> objects(static_cast<std::size_t>(me), 5);
    if (me == from) objects = {from, std::string("of ") + std::to_string(from), 3};
    auto& same = accelerator.broadcast_object_list(objects, from);
    CHECK(&same == &objects);
    REQUIRE(objects.size() == 3);
    CHECK(std::get<int>(objects[0]) == from);
    CHECK(std::get<std::string>(objects[1]) == "of " + std::to_string(from));
  }
  std::vector<int> numbers;
  CHECK_THROWS_WITH(accelerator.broadcast_object_list(numbers, n), ContainsSubstring("Broadcast from rank"));
}

TEST_CASE("an object that one rank cannot read is an error on all ranks") {
  const Accelerator accelerator;
  std::vector<Wrong> objects(1);
  CHECK_THROWS_WITH(accelerator.gather_object(objects), ContainsSubstring("'b'"));
  if (accelerator.num_processes() > 1)  // the sender reads nothing
    CHECK_THROWS_WITH(accelerator.broadcast_object_list(objects), ContainsSubstring("'b'"));
  CHECK(accelerator.gather_object(1).size() == static_cast<std::size_t>(accelerator.num_processes()));
}

TEST_CASE("gather_for_metrics of objects returns exactly the data set") {
  Accelerator accelerator;
  for (std::int64_t count = 1; count <= 4L * accelerator.num_processes() + 3; ++count) {
    auto loader = accelerator.prepare(data_loader(test::Rows{count}, {.batch_size = 2}));
    std::vector<std::string> all;
    for (auto& batch : loader) {
      std::vector<std::string> names;
      for (std::int64_t i = 0; i < batch.target.size(0); ++i)
        names.push_back(std::to_string(batch.target[i].item<double>()));
      const auto [gathered, targets] = accelerator.gather_for_metrics(names, batch.target);
      CHECK(gathered.size() == static_cast<std::size_t>(targets.size(0)));
      all.insert(all.end(), gathered.begin(), gathered.end());
    }
    CHECK(all.size() == static_cast<std::size_t>(count));
    CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
  }
}

TEST_CASE("a trigger set on any rank is seen once on all ranks") {
  Accelerator accelerator;
  CHECK_FALSE(accelerator.check_trigger());
  for (int rank = 0; rank < accelerator.num_processes(); ++rank) {
    if (accelerator.process_index() == rank) accelerator.set_trigger();
    CHECK(accelerator.check_trigger());
    CHECK_FALSE(accelerator.check_trigger());
  }
}
