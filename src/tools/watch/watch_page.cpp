#include "tools/watch/watch_page.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "tools/charts/page.hpp"
#include "tools/watch/watch_json.hpp"
#include "tools/watch/watch_ranks.hpp"

namespace hortator::tools {
namespace {

using PageJson = nlohmann::ordered_json;

constexpr std::size_t max_curves = 24;
constexpr std::size_t max_page_points = 2000;

constexpr const char* watch_script =
#include "tools/watch/page.inc"
    ;

PageJson json_of_curve(const Curve& curve) {
  PageJson json = {{"x", PageJson::array()}, {"y", PageJson::array()}};
  const auto thin = thinned(curve, max_page_points);
  for (std::size_t i = 0; i < thin.x.size(); ++i) {
    json["x"].push_back(std::round(thin.x[i] * 10) / 10);
    json["y"].push_back(core::json_of(page_number(thin.y[i])));
  }
  return json;
}

/// A curve for each name, the loss first, and the rate.
PageJson curves_of(const std::vector<MetricRow>& rows) {
  std::vector<std::string> names;
  std::map<std::string, Curve> curves;
  for (const auto& row : rows) {
    for (const auto& [name, value] : row.values) {
      auto& curve = curves[name];
      if (curve.x.empty()) names.push_back(name);
      curve.x.push_back(static_cast<double>(row.step));
      curve.y.push_back(value);
    }
  }
  std::ranges::stable_partition(names, [](const std::string& name) { return name == "loss"; });
  PageJson json = PageJson::object();
  for (std::size_t i = 0; i < std::min(names.size(), max_curves); ++i) json[names[i]] = json_of_curve(curves[names[i]]);
  if (auto rate = rate_of(rows, max_page_points / 4); !rate.x.empty()) json["steps per second"] = json_of_curve(rate);
  return json;
}

/// A list for each figure, and the hosts' names apart: ten thousand ranks must fit.
void put_rank_lists(PageJson& json, const std::vector<observe::RankStatus>& ranks, double now) {
  std::map<std::string, std::size_t> hosts;
  json["hosts"] = PageJson::array();
  auto& lists = json["ranks"];
  for (const char* name : {"rank", "host", "communication", "data_wait", "memory", "cpus_used", "gpu_busy", "silent"})
    lists[name] = PageJson::array();
  for (const auto& rank : ranks) {
    const auto [host, is_new] = hosts.emplace(rank.host, hosts.size());
    if (is_new) json["hosts"].push_back(rank.host);
    lists["rank"].push_back(rank.rank);
    lists["host"].push_back(host->second);
    lists["communication"].push_back(page_number(rank.communication));
    lists["data_wait"].push_back(page_number(rank.data_wait));
    lists["memory"].push_back(rank.memory_bytes);
    lists["cpus_used"].push_back(page_number(rank.cpus_used));
    lists["gpu_busy"].push_back(rank.device_busy ? PageJson(page_number(*rank.device_busy)) : PageJson());
    lists["silent"].push_back(is_silent(rank, now) ? 1 : 0);
  }
}

void put_starts(PageJson& json, const WatchFacts& facts) {
  json["sessions"] = PageJson::array();
  json["restart_steps"] = PageJson::array();
  for (const auto& session : facts.sessions) {
    json["sessions"].push_back(
        {{"time", session.started},
         {"ranks", session.world},
         {"job", session.job},
         {"resumed_after", session.resumed_after ? PageJson(*session.resumed_after) : PageJson()}});
    if (session.resumed_after) json["restart_steps"].push_back(*session.resumed_after);
  }
}

void put_slowest(PageJson& json, const std::vector<observe::RankStatus>& ranks) {
  constexpr std::size_t max_shown = 20;
  json["slowest"] = PageJson::array();
  const auto slow = slowest(ranks);
  for (std::size_t i = 0; i < std::min(slow.size(), max_shown); ++i) {
    json["slowest"].push_back({{"rank", slow[i].rank},
                               {"host", slow[i].host},
                               {"communication", slow[i].communication},
                               {"data_wait", slow[i].data_wait}});
  }
}

std::string ranks_line(const WatchFacts& facts, const observe::RankStatus* main) {
  if (main == nullptr) return "";
  std::set<std::string> hosts;
  for (const auto& rank : facts.ranks) hosts.insert(rank.host);
  return text::concat(text::count(main->world, "rank"), " on ",
                      text::count(static_cast<long long>(hosts.size()), "node"));
}

PageJson data_of(const WatchFacts& facts, double now, double refresh) {
  // The figures of watch --json, without its list of ranks.
  auto without_ranks = facts;
  std::erase_if(without_ranks.ranks, [](const observe::RankStatus& rank) { return rank.rank != 0; });
  auto json = PageJson::parse(watch_json({without_ranks}, now))["runs"][0];
  const auto* main = main_rank(facts);
  const auto energy = energy_of(facts.ranks);
  if (!energy.source.empty())
    json["energy"] = {{"joules", energy.joules}, {"samples", energy.samples}, {"source", energy.source}};
  json["time"] = now;
  json["refresh"] = refresh;
  json["is_live"] = !has_ended(facts) && main != nullptr && !main->is_over;
  json["ranks_text"] = ranks_line(facts, main);
  json["ranks"] = PageJson::object();
  put_rank_lists(json, facts.ranks, now);
  put_starts(json, facts);
  put_slowest(json, facts.ranks);
  json["curves"] = curves_of(facts.rows);
  return json;
}

}  // namespace

std::string watch_page(const WatchFacts& facts, const std::vector<std::pair<std::string, std::string>>& settings,
                       double now, double refresh) {
  auto json = data_of(facts, now, refresh);
  json["settings"] = PageJson::object();
  for (const auto& list : {facts.arguments, settings}) {
    for (const auto& [name, value] : list) json["settings"][name] = value;
  }
  return html_page(json, watch_script);
}

}  // namespace hortator::tools
