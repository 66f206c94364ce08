#include "core/worker/output_router.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"

namespace cairn {

void OutputRouter::emit(std::uint32_t signal, std::uint32_t modality, const SignalValue& value, bool new_token) {
  (void)signal, (void)new_token;
  const bool tokens =
      spec_.text != CAIRN_TEXT_NONE && api_.postprocess == nullptr && spec_.output_modalities[modality] == "text";
  for (const TensorPtr& tensor : value) {
    if (tokens) {
      emit_tokens(*tensor);
    } else {
      emit_bytes(modality, *tensor);
    }
  }
}

void OutputRouter::emit_tokens(const Tensor& tensor) {
  if (tensor.dtype().code != CAIRN_DTYPE_INT || (tensor.dtype().bits != 32 && tensor.dtype().bits != 64)) {
    throw InternalError("The plugin sent text output that is not a tensor of int32 or int64 token ids.");
  }
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    emit_token(tensor.dtype().bits == 32
                   ? reinterpret_cast<const std::int32_t*>(tensor.data())[i]
                   : static_cast<std::int32_t>(reinterpret_cast<const std::int64_t*>(tensor.data())[i]));
  }
}

void OutputRouter::emit_token(std::int32_t token) {
  RequestRecord& record = *record_;
  if (record.stop_token >= 0 || record.reached_max) return;  // the request has ended; the rest is overshoot
  if (record.delivered >= record.spec.min_tokens &&
      std::find(record.end_tokens.begin(), record.end_tokens.end(), token) != record.end_tokens.end()) {
    record.stop_token = token;
    return;
  }
  TokenRecord output;
  if (row_->has_sampled && row_->sampled.token == token) {
    output = row_->sampled;
  } else {
    output.token = token;
  }
  ++record.delivered;
  record.sink->on_tokens({&output, 1});
  record.reached_max = record.delivered >= record.max_tokens;
}

void OutputRouter::emit_bytes(std::uint32_t modality, Tensor& tensor) {
  const std::string& name = spec_.output_modalities[modality];
  if (api_.postprocess == nullptr) {
    record_->sink->on_bytes(name, {tensor.data(), tensor.nbytes()});
    return;
  }
  arena_.reset();
  const cairn_tensor_view view = tensor.view();
  cairn_postprocess_args args{};
  args.struct_size = CAIRN_SIZE(cairn_postprocess_args, arena);
  args.request_id = to_abi_str(record_->spec.id);
  args.request = record_->handle;
  args.modality = modality;
  args.tensor = &view;
  args.arena = arena_.table();
  cairn_bytes out{};
  check_status(api_.postprocess(model_, &args, &out), "postprocess of the model");
  record_->sink->on_bytes(name, {static_cast<const std::byte*>(out.data), static_cast<std::size_t>(out.size)});
}

void OutputRouter::persist(std::uint32_t signal, const SignalValue& value) {
  for (SignalTensors& kept : record_->persisted) {
    if (kept.signal == signal) {
      kept.value.insert(kept.value.end(), value.begin(), value.end());
      return;
    }
  }
  record_->persisted.push_back({signal, value});
}

}  // namespace cairn
