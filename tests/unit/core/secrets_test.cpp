#include "core/environment/secrets.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("values of secrets are hidden by the variable's name, in any case") {
  for (const auto* name :
       {"PBS_JOBCOOKIE", "SLURM_JWT", "WANDB_API_KEY", "hf_token", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD",
        "SSH_AUTH_SOCK", "OMPI_MCA_orte_precondition_transports", "PMIX_SERVER_URI41"}) {
    CHECK(core::is_secret(name));
    CHECK(core::shown_value(name, "s3cr3t") == "(not shown)");
    CHECK(core::secret_names().find('|') != std::string::npos);
  }
  for (const auto* name : {"OMP_NUM_THREADS", "PBS_O_WORKDIR", "HOME", "PATH"}) {
    CHECK_FALSE(core::is_secret(name));
    CHECK(core::shown_value(name, "4") == "4");
  }
}

TEST_CASE("a password in an address is hidden, whatever the variable's name") {
  CHECK(core::shown_value("http_proxy", "http://u:s3cr3t@proxy:80/") == "http://(not shown)@proxy:80/");
  CHECK(core::shown_value("X", "a http://u:p@q@h b https://h/x@y") == "a http://(not shown)@h b https://h/x@y");
  CHECK(core::shown_value("X", "http://") == "http://");
}
