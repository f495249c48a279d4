import torch, tempfile, functools, time
from lowpeak.engine.vae.toy import write_toy_video_vae
from lowpeak.engine.vae.files import open_video_vae
from lowpeak.engine.vae.decoder import decode_video
from lowpeak.engine.vae.streamed import StreamedBlocks
f=open_video_vae(write_toy_video_vae(tempfile.mkdtemp(),1,layout='comfy'))
z=torch.randn(1,24,17,24,20,generator=torch.Generator().manual_seed(0))
with torch.inference_mode():
    blk=[f.block(i,'cpu',torch.float32) for i in range(3)]
    want=decode_video(z,f.root(),blk,f.config)
    g=[{k:v.cuda() for k,v in b.items()} for b in blk]
    got=decode_video(z,f.root('cuda'),g,f.config).cpu()
    e=lambda a,b:((a-b).abs().max()/b.abs().max()).item()
    print('gpu fp32 vs cpu', e(got,want))
    h=[{k:v.half() for k,v in b.items()} for b in g]
    half=decode_video(z,f.root('cuda'),h,f.config,compute_dtype=torch.float16).cpu()
    print('gpu fp16 vs cpu fp32', e(half,want))
    for res,pin,clips in (((),(0,1,2),1),((),(),2),((0,2),(1,),3),((0,1,2),(),1)):
        with StreamedBlocks(f,torch.device('cuda'),torch.float16,resident=res,pinned=pin) as b:
            o=decode_video(z,f.root('cuda'),b,f.config,compute_dtype=torch.float16,clips_per_group=clips).cpu()
        print(res,pin,clips,torch.equal(o,half))
