// Fuzzes chat templates: any text is refused, or renders a conversation or refuses it.
#include <cstdint>
#include <hortator/error.hpp>
#include <hortator/models/chat_template.hpp>

#include "target.hpp"

using namespace hortator;

FUZZ_TARGET(chat_template) {
  try {
    const auto chat = models::ChatTemplate::from_text(std::string(reinterpret_cast<const char*>(data), size),
                                                      {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    chat.render({{"system", "Be kind."}, {"user", " hello\n"}, {"assistant", "d\u00e9j\u00e0"}});
  } catch (const Error&) {
  }
  return 0;
}
