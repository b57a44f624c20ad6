"""Names that PyTorch has and tgraph has not, as patterns of names, by the reason.

A pattern is of a whole name, below `torch` unless it names a module. `docs/differences.md` tells
what the families are.
"""

ABSENT: dict[str, str] = {
    "numbers are not quantized here": r"""
        .*quant.* .*qparams.* (?:Tensor\.)?(?:q_.*|qscheme|int_repr) quint\d.* qint\d.* qscheme
        Q(?:U)?Int.*Storage per_(?:channel|tensor)_.* fbgemm_.* fused_moving_avg_obs_fake_quant
        nn\.functional\.(?:grouped_mm|scaled_grouped_mm|scaled_mm|ScalingType|SwizzleType)
        """,
    "kernels of one library, or of one part of a network: the function itself is there": r"""
        cudnn_.* miopen_.* mkldnn_.* batch_norm_(?!$).* native_norm embedding_bag
        Tensor\.(?:to_mkldnn|to_padded_tensor)
        """,
    "of the compiler of scripts, and its types": r"""
        .*Type Script.* .*Script(?:Module|Dict|List|Object).* import_ir_.* parse_.*
        AliasDb Argument ArgumentSpec Benchmark.* Block BufferDict CallStack Capsule Code
        CompilationUnit CompleteArgumentSpec ConcreteModuleTypeBuilder DeepCopyMemoTable
        DeserializationStorageContext DispatchKey.* ErrorReport Exclude.*Guard ExecutionPlan
        FatalError FileCheck FunctionSchema Future fork wait Gradient GraphExecutorState
        IODescriptor JITException LockingLogger LoggerBase NoopLogger ModuleDict Node OperatorInfo
        ParameterDict PyTorchFile.* SerializationStorageContext StaticModule Tag ThroughputBenchmark
        TracingState Type Use Value merge_type_from_type_comment unify_type_list
        """,
    "sizes that a trace leaves open are guarded by comparing them": r"""
        SymBool SymFloat SymInt sym_constrain_range.* sym_fresh_size
        """,
    "there are no tensors of these types of numbers": r"""
        (?:Tensor\.)?chalf complex32 float[48]_.* u?int[1-7] bits.* bit
        """,
    "sparse tensors are COO, CSR and CSC, and have methods that dense ones have not": r"""
        sparse_(?:bsc|bsr).* (?:Tensor\.)?(?:ccol|col|crow|row)_indices(?:_copy)?
        (?:Tensor\.)?(?:indices|values)(?:_copy)?
        Tensor\.(?:coalesce|is_coalesced|sparse_resize.*) (?:Tensor\.)?resize_as_sparse_
        (?:Tensor\.)?(?:smm|sspaddmm) dsmm hsmm hspmm saddmm spmm jagged
        nn\.functional\.sparse_support_notes
        """,
    "where memory lies: storages have their own classes": r"""
        Tensor\.module_load
        Storage StorageBase to_dlpack nn\.utils\.convert_conv\dd_weight_memory_format
        """,
    "devices are the CPU and CUDA": r"""
        Tensor\.(?:is_)?(?:ipu|maia|mtia|vulkan|xla|xpu) DeviceObjType Event Stream.*
        get_device_module
        .*autocast_(?:ipu|xla).* AcceleratorError OutOfMemoryError GradScaler
        """,
    "autocast is a context manager alone": r"""
        autocast_(?:in|de)crement_nesting clear_autocast_cache set_autocast_.*
        """,
    "functions are not overridden by classes of users": r"""
        DisableTorchFunction.* (?:nn\.functional|autograd)\.(?:handle|has)_torch_function.*
        autograd\.is_tensor_like nn\.functional\.(?:boolean_dispatch|assert_int_or_pair)
        """,
    "of the profiler and of the engine of gradients in C++": r"""
        autograd\.(?:Profiler.*|DeviceType|NestedIOFunction|SavedTensor|kineto_available)
        autograd\.(?:enforce_grad_layout_policy|is_multithreading_enabled|is_view_replay_enabled)
        autograd\.set_multithreading_enabled profiler_allow_.*
        """,
    "what `torch` keeps for itself, or was removed": r"""
        AVG SUM AggregationType PRIVATE_OPS TYPE_CHECKING USE_.* classproperty
        compiled_with_cxx11_abi get_file_path init_num_threads prepare_multiprocessing_environment
        thread_safe_generator Tensor\.(?:grad_dtype|index|volatile)
        nn\.factory_kwargs .*\.common_args .*common_notes .*factory_common_args .*multi_dim_common
        nn\.functional\.(?:BroadcastingList\d|GRID_SAMPLE.*|.*_notes)
        (?:nn\.functional|special)\.(?:Tensor|TYPE_CHECKING|Callable|DType|Optional)
        func\.(?:debug_unwrap|functionalize|rearrange) optim\.swap_in_optimizer_params_and_state
        """,
}
