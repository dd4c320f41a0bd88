#include <tandem/accelerator_options.h>

namespace tandem {

template void detail::collect_fields(AcceleratorOptions& config, std::string_view prefix, std::string_view section,
                                     std::vector<Field>& fields);
template void validate_fields(AcceleratorOptions& config);

}  // namespace tandem
