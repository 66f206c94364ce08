// The services this host names but does not drive yet: media, regions, collectives. Each call says so.
#include "core/base/error.hpp"
#include "core/plugin/service_tables.hpp"
#include "core/plugin/status.hpp"

namespace cairn {

namespace {

cairn_status no_media(const char* function) {
  return guard(function,
               [] { throw NotSupported("this host decodes no images, audio or video; decode them in the plugin"); });
}
cairn_status no_collectives(const char* function) {
  return guard(function, [] {
    throw NotSupported("this host runs every node on one rank; serve the model without tensor or sequence parallelism");
  });
}

}  // namespace

const cairn_media_service kMediaService = {
    .struct_size = sizeof(cairn_media_service),
    .load_image = [](cairn_bytes, cairn_tensor**) { return no_media("media.load_image"); },
    .load_audio = [](cairn_bytes, std::int64_t, cairn_tensor**) { return no_media("media.load_audio"); },
    .load_video = [](cairn_bytes, double, cairn_tensor**, double*) { return no_media("media.load_video"); },
};

const cairn_region_service kRegionService = {
    .struct_size = sizeof(cairn_region_service),
    .can_run = [](cairn_region_runner*, std::int64_t, std::int64_t) -> std::uint32_t { return 0; },
    .run =
        [](cairn_region_runner*, cairn_step_context*, cairn_named_tensor_span, const cairn_request*, std::uint64_t,
           cairn_i64_span, cairn_named_tensor_span*) {
          return set_status(
              CAIRN_STATUS_UNSUPPORTED,
              "regions.run: this host captures no regions; run the region's body eagerly, as can_run says");
        },
};

const cairn_collective_service kCollectiveService = {
    .struct_size = sizeof(cairn_collective_service),
    .group = [](cairn_model*, std::uint32_t, std::uint32_t,
                cairn_comm**) { return no_collectives("collectives.group"); },
    .all_reduce = [](cairn_comm*, const cairn_tensor_view*, void*) { return no_collectives("collectives.all_reduce"); },
    .all_gather = [](cairn_comm*, const cairn_tensor_view*, const cairn_tensor_view*,
                     void*) { return no_collectives("collectives.all_gather"); },
    .all_to_all = [](cairn_comm*, const cairn_tensor_view*, const cairn_i64_span*, const cairn_tensor_view*,
                     const cairn_i64_span*, void*) { return no_collectives("collectives.all_to_all"); },
    .broadcast = [](cairn_comm*, const cairn_tensor_view*, std::int32_t,
                    void*) { return no_collectives("collectives.broadcast"); },
};

}  // namespace cairn
