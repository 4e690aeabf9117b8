#include "models/chat/program.hpp"

namespace hortator::models::chat {

Value Scope::find(const std::string& name) const {
  for (const auto* scope = this; scope != nullptr; scope = scope->parent) {
    const auto found = scope->names.find(name);
    if (found != scope->names.end()) return found->second;
  }
  return {};
}

void Rendering::step() {
  constexpr std::size_t max_steps = 5'000'000;
  if (++steps_ > max_steps || out.size() > max_text) fail("it does not come to an end");
}

void Rendering::enter() {
  constexpr std::size_t deepest = 20;
  if (++calls_ > deepest) fail("macros call each other too deeply");
}

Flow run(const Block& block, Rendering& rendering) {
  for (const auto& statement : block) {
    rendering.step();
    const auto flow = statement(rendering);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

std::string text_of(const Block& block, Rendering& rendering) {
  const auto begin = rendering.out.size();
  run(block, rendering);
  auto text = rendering.out.substr(begin);
  rendering.out.resize(begin);
  return text;
}

}  // namespace hortator::models::chat
