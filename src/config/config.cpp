#include <tandem/config.h>
#include <tandem/error.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "config/fields.h"
#include "config/flags.h"

namespace tandem {
namespace {

void set_from_flag(Field& field, const std::string& text, const ProgramText& program) {
  const std::string flag = flag_names(field).front();
  set_field(field, flag_value(field, text), flag, ErrorKind::Usage, str(program.name, ": ", flag));
}

}  // namespace

LoadedConfig load_fields(std::vector<Field> fields, std::span<const std::string> args, const ProgramText& program,
                         const std::function<void()>& validate) {
  LoadOptions options;
  std::vector<Field> all = fields;
  std::ranges::move(fields_of(options), std::back_inserter(all));
  GivenFlags given = parse_flags(all, args, program);

  for (const GivenFlag& flag : given.flags) {
    if (flag.field >= fields.size()) set_from_flag(all[flag.field], flag.text, program);
  }
  if (options.help) return {.fields = {}, .rest = {}, .text = config_help(fields, program)};
  if (options.config) load_yaml(fields, *options.config);
  for (const GivenFlag& flag : given.flags) {
    if (flag.field < fields.size()) set_from_flag(fields[flag.field], flag.text, program);
  }
  validate();
  std::string text = options.dump_config ? config_yaml(fields) : "";
  return {.fields = std::move(fields), .rest = std::move(given.rest), .text = std::move(text)};
}

}  // namespace tandem
